//go:build !race

package numa

const raceDetector = false
