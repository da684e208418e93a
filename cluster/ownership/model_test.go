package ownership

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"lunar/cluster"
)

var (
	steps = flag.Int("ownership.steps", 80_000, "steps of TestModel")
	seed  = flag.Uint64("ownership.seed", 0, "the only seed of TestModel; 0: several")
)

// TestModel has a cluster of three nodes do random things, and looks after each step
// whether two nodes serve cached reads, a cached read is stale, a volume is opened before
// its earlier owners are fenced, an owner is fenced by somebody whom it has superseded, or a
// volume that was gone and forgotten is opened by a node that has an older image of it, or for an
// epoch which its image does not take.
// Now and then everything is repaired: each volume has one owner then within a bounded
// time, and of one that is gone nothing is left.
func TestModel(t *testing.T) {
	const episode = 4000
	counts := map[string]int{}
	for at := range uint64(max(*steps/episode, 1)) {
		if *seed != 0 {
			at = *seed
		}
		w := newWorld(at)
		for i := range episode {
			if w.random(); w.fault != "" {
				t.Fatalf("seed %d, step %d: %s", at, i, w.fault)
			}
		}
		w.repair(t, at)
		for what, n := range w.counts {
			counts[what] += n
		}
	}
	for _, what := range []string{"kill", "stop", "cut", "alone", "links", "link", "spared", "yield", "deaf", "sick", "quorum", "move", "drain", "fence", "open", "close", "write", "hit", "bypass", "lost", "conflict", "revise", "forgotten", "forgotten, owned", "forgotten, claiming", "gave up", "fleeting"} {
		if counts[what] == 0 {
			t.Errorf("nothing was tried of %q: %v", what, counts)
		}
	}
	t.Log(counts)
}

// faults are what may happen to a node, and how seldom: once in so many steps.
var faults = []struct {
	what string
	one  int
	do   func(*host)
}{
	{"kill", 400, func(h *host) {
		if h.alive {
			h.kill()
		}
	}},
	{"start", 100, func(h *host) {
		if !h.alive {
			h.start()
		}
	}},
	{"stop", 400, func(h *host) { h.stopped = h.now.Add(time.Duration(h.rand.IntN(6000)) * time.Millisecond) }},
	{"cut", 400, func(h *host) { h.cut = true }},
	{"mend", 100, func(h *host) { h.cut = false }},
	{"alone", 800, func(h *host) { // from the state and from all others
		h.cut = true
		h.links(true)
	}},
	{"links", 400, func(h *host) { h.links(true) }},
	{"link", 200, func(h *host) { h.apart[h.other()] = true }},
	{"relink", 100, func(h *host) { h.links(false) }},
	{"deaf", 200, func(h *host) { h.deaf = h.now.Add(time.Duration(h.rand.IntN(4000)) * time.Millisecond) }},
	{"storm", 400, func(h *host) {
		for _, o := range h.world.nodes {
			o.deaf = o.now.Add(time.Duration(o.rand.IntN(1000)) * time.Millisecond)
		}
	}},
	{"sick", 300, func(h *host) { h.sick = true }},
	{"heal", 100, func(h *host) { h.sick = false }},
	{"quorum", 800, func(h *host) { h.quorum = false }},
	{"elect", 100, func(h *host) {
		if !h.quorum {
			h.quorum = true
			h.store.Renew(h.now)
		}
	}},
	{"away", 800, func(h *host) {
		if !h.cephAway {
			h.cephAway, h.awaySince = true, h.now
		}
	}},
	{"back", 100, func(h *host) { h.cephAway = false }},
	{"move", 200, func(h *host) {
		h.ask(h.keys.Move([]string{"cached", "plain"}[h.rand.IntN(2)]), Request{To: h.name}.Encode())
	}},
	{"drain", 400, func(h *host) { h.ask(h.keys.Drain(h.name), []byte("{}")) }},
	{"stuck", 200, func(h *host) { h.stuck = h.now.Add(time.Duration(h.rand.IntN(10000)) * time.Millisecond) }},
	{"revise", 300, func(h *host) { h.revise() }},
	{"forget", 20, func(h *host) { h.forget() }},
	{"fill", 200, func(h *host) {
		_, _ = h.store.Commit(nil, []cluster.Change{{Key: h.keys.Drain(h.name), Delete: true}})
	}},
}

// links cuts all links of a node, or mends them.
func (h *host) links(cut bool) {
	for _, o := range h.world.nodes {
		h.apart[[2]string{h.name, o.name}], h.apart[[2]string{o.name, h.name}] = cut, cut
	}
}

// other is a link of a node, one way.
func (h *host) other() [2]string {
	o := h.world.nodes[h.rand.IntN(len(h.world.nodes))].name
	if h.chance(2) {
		return [2]string{o, h.name}
	}
	return [2]string{h.name, o}
}

func (h *host) ask(key string, value []byte) {
	_, _ = h.store.Commit(nil, []cluster.Change{{Key: key, Value: value}})
}

// random is one step.
func (w *world) random() {
	w.now = w.now.Add(time.Duration(w.rand.IntN(40)) * time.Millisecond)
	if w.quorum {
		w.store.Expire(w.now)
	}
	h := w.nodes[w.rand.IntN(len(w.nodes))]
	for _, f := range faults {
		if w.chance(f.one) {
			w.counts[f.what]++
			f.do(h)
		}
	}
	w.commands(h)
	h.turn()
	w.commands(h)
	for _, v := range []string{"cached", "plain"} {
		w.trusted(v)
	}
	if w.chance(100) {
		_, at := w.store.Get("-")
		w.store.Compact(at - cluster.Revision(w.rand.IntN(20)))
	}
}

func (w *world) commands(h *host) {
	for _, v := range []string{"cached", "plain"} {
		if w.chance(2) {
			h.read(v)
		}
		if w.chance(4) && h.alive {
			h.write(v)
		}
	}
	if w.chance(20) {
		h.write(fleeting)
	}
}

// repair mends everything, and waits for one owner of each volume.
func (w *world) repair(t *testing.T, seed uint64) {
	w.quorum, w.cephAway, w.calm = true, false, true
	w.store.Renew(w.now)
	for _, h := range w.nodes {
		h.cut, h.sick, h.stopped, h.deaf, h.stuck = false, false, time.Time{}, time.Time{}, time.Time{}
		h.links(false)
		if h.behind() {
			h.kill()
		}
		if !h.alive {
			h.start()
		}
	}
	const enough = 15 * time.Second
	began := w.now
	for !w.settled() {
		if w.now = w.now.Add(5 * time.Millisecond); w.now.Sub(began) > enough {
			t.Fatalf("seed %d: no owner of each volume %v after everything was repaired:\n%s", seed, enough, w.describe())
		}
		w.store.Expire(w.now)
		for _, h := range w.nodes {
			h.turn()
			h.forget()
			for _, v := range []string{"cached", "plain", fleeting} {
				h.write(v)
				h.read(v)
			}
		}
		if w.fault != "" {
			t.Fatalf("seed %d, when everything was repaired: %s", seed, w.fault)
		}
	}
}

// settled reports whether each volume has an owner that can write, and all agree.
func (w *world) settled() bool {
	for name, v := range w.volumes {
		if !w.owned(name, v) {
			return false
		}
	}
	image := w.conf.images[w.conf.newest()]
	for _, h := range w.nodes {
		if h.knows != w.conf.newest() {
			return false
		}
	}
	if image == "" {
		items, _ := w.store.Get(w.keys.Volume(fleeting))
		return len(items) == 0
	}
	return w.owned(fleeting, w.fleeting[image])
}

// owned reports whether a volume has one owner that can write, and all others say so.
func (w *world) owned(name string, v *image) bool {
	var owners, standby int
	for _, h := range w.nodes {
		switch m := h.o.Machines[name]; m.access.kind {
		case Serve:
			if m.record.Standing == Owned && v.lock == m.disk.Address && !w.blocked[v.lock] {
				owners++
			}
		case Standby:
			standby++
		}
	}
	return owners == 1 && standby == len(w.nodes)-1
}

func (w *world) describe() (all string) {
	items, _ := w.store.Get("")
	for _, i := range items {
		all += i.Key + " " + string(i.Value) + "\n"
	}
	for _, name := range append(slices.Sorted(maps.Keys(w.volumes)), fleeting) {
		all += name + "\n"
		for _, h := range w.nodes {
			m := h.o.Machines[name]
			if m == nil {
				continue
			}
			all += "  lock " + h.image(name, m).lock + "  " + h.name + " " + string(m.State()) + " access " + string('0'+rune(m.access.kind)) + " address " + m.address + "\n"
		}
	}
	return all
}
