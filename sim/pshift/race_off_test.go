//go:build !race

package pshift

const raceDetector = false
