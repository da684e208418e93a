//go:build !race

package haechi

const raceDetector = false
