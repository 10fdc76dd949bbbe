package catalog

import "fmt"

// route takes out every workload that wants a route another one has already:
// the same host with the same path. An entry of the file wins over a label,
// an earlier entry over a later one, and of two labelled workloads the one
// whose name sorts first, so that the outcome does not depend on chance.
func (b *builder) route(settled []*draft) []*draft {
	taken := map[string]*draft{} // host and path -> whose it is
	var kept []*draft
	for _, d := range settled {
		if b.routed(d, taken); d.bad {
			continue
		}
		for _, host := range d.w.Hosts {
			taken[host+d.w.Path] = d
		}
		kept = append(kept, d)
	}
	return kept
}

func (b *builder) routed(d *draft, taken map[string]*draft) {
	for _, host := range d.w.Hosts {
		if first := taken[host+d.w.Path]; first != nil {
			b.reject(d, d.placeOf("host"), fmt.Sprintf("the route %s%s belongs to %s already (%s)", host, d.w.Path, first.name, first.place()), "give one of them another host or path")
		}
	}
}
