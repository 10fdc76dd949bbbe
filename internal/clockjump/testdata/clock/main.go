// Clock answers each line of its input with what its clocks show: the wall
// clock, and the time since it began by the monotonic one, in nanoseconds.
package main

import (
	"bufio"
	"fmt"
	"os"
	"time"
)

func main() {
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		now := time.Now()
		fmt.Println(now.UnixNano(), now.Sub(began).Nanoseconds())
	}
}
