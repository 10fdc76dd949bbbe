//go:build race

package sablier_test

const raceEnabled = true
