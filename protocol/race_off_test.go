//go:build !race

package protocol_test

const raceDetector = false
