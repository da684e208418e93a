//go:build race

package pshift

const raceDetector = true
