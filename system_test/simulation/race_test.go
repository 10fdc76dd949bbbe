//go:build race

package simulation

// seedsByDefault are fewer with the race detector, which makes each five
// times as long: it looks for races, and meets them in few.
const seedsByDefault = 300
