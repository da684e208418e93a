package net

import "math"

// Open is the Control of traffic that nothing governs: its load is bounded where it is
// admitted.
type Open struct{}

// Window implements Control.
func (Open) Window() float64 { return math.Inf(1) }

// Gap implements Control.
func (Open) Gap(int) int64 { return 0 }

// Acknowledged implements Control.
func (Open) Acknowledged(int64, *Flow, *Packet) {}

// Lost implements Control.
func (Open) Lost() {}
