//go:build race

package fussy

const raceDetector = true
