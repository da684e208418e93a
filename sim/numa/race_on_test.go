//go:build race

package numa

const raceDetector = true
