package simulation

import "fmt"

// A place is where a node runs, one after the other.
type place struct {
	w     *world
	name  string
	make  func(*place) node
	count int     // of the nodes that were here
	node  node    // nil: there is none; guarded by world.mu
	cuts  int     // the link is cut; guarded by world.mu
	links []*conn // of all that were here; guarded by world.mu
}

// A node is a process of its own.
type node interface {
	run()
	stop()
	crash()
	link() *conn
}

func (g *gateway) link() *conn    { return g.conn }
func (n *scalerNode) link() *conn { return n.conn }

// incarnation names the next node here; no other ever had the name.
func (p *place) incarnation() string {
	p.count++
	return fmt.Sprintf("%s.%d", p.name, p.count)
}

func (p *place) start() {
	n := p.make(p)
	p.w.do(func() {
		p.node = n
		n.link().cut = p.cuts > 0
		p.links = append(p.links, n.link())
		if s, ok := n.(*scalerNode); ok {
			p.w.named[s.name] = s
		}
	})
	p.w.note(p.name, "begins")
	p.w.tasks.Go(n.run)
}

// take leaves the place empty, and gives who was there.
func (p *place) take() (n node) {
	p.w.do(func() { n, p.node = p.node, nil })
	return n
}

func (p *place) crash() func() {
	n := p.take()
	if n == nil {
		return nil
	}
	p.w.note(p.name, "is killed")
	n.crash()
	return p.start
}

// stop ends the node in good order; the next may come before it has ended.
func (p *place) stop() func() {
	n := p.take()
	if n == nil {
		return nil
	}
	p.w.note(p.name, "is told to end")
	p.w.tasks.Go(n.stop)
	return p.start
}

func (p *place) cutOff() func() {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.cuts++; p.cuts == 1 {
		for _, c := range p.links {
			c.part()
		}
	}
	return func() {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		if p.cuts--; p.cuts > 0 {
			return
		}
		for _, c := range p.links {
			c.mend()
		}
	}
}
