//go:build race

package experimenttest

// RaceDetector tells that this is a build with the race detector.
const RaceDetector = true
