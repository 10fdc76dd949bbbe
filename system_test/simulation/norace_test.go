//go:build !race

package simulation

// seedsByDefault take about 15 s of two cores.
const seedsByDefault = 2000
