//go:build !race

package sablier_test

const raceEnabled = false
