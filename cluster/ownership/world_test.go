package ownership

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
)

// world is a cluster in which everything that can go wrong does: the State, Ceph, and
// nodes that are killed, stopped and cut off from both. Its time is its own.
type world struct {
	rand      *rand.Rand
	now       time.Time
	store     *mem.Store
	keys      cluster.Keys
	quorum    bool
	cephAway  bool
	awaySince time.Time
	calm      bool // nothing goes wrong any more
	blocked   map[string]bool
	volumes   map[string]*image
	fleeting  map[string]*image // by image
	conf      *configuration
	nodes     []*host
	apart     map[[2]string]bool // nodes between which there is no link, one way
	counts    map[string]int
	fault     string // the first invariant that does not hold
}

// image is a volume as Ceph has it.
type image struct {
	value  int    // number of writes that were applied
	acked  int    // of the last write that was acknowledged
	lock   string // address
	opened map[string]uint64
}

// host is a node: its process, if it lives.
type host struct {
	*world
	name        string
	alive       bool
	stopped     time.Time // until then
	cut, sick   bool      // from the State, from Ceph
	deaf        time.Time // its Watch stalls until then, and nothing else
	incarnation string
	instance    string
	instances   int
	knows       int64     // revision of the configuration that it goes by
	stuck       time.Time // until then it cannot go by another one
	parting     int64     // revision by which it is about to have fleeting no more; 0: none
	o           *Observer
	at          cluster.Revision
	leases      [2]lease // of the record and of the pulse
	work        []work   // under way
	caches      map[string]int
	beat        Linked            // what it said last, and until when that counts for who hears it at once
	beats       int               // that it has said
	silent      time.Time         // since when Ceph does not answer; zero: it does
	answered    time.Time         // when it has answered last
	heard       map[string]Linked // of others
	heardBeats  map[string]int
}

type lease struct {
	id       cluster.LeaseID
	deadline time.Time
}

// work is an action under way.
type work struct {
	volume string
	m      *Machine
	a      Action
	at     time.Time
	done   bool // what it does has happened, and only the answer is missing
	out    Outcome
}

const (
	leaseTTL = 2 * time.Second
	pulseTTL = time.Second
	limit    = 8 * time.Second // of actions
	muteTime = 500 * time.Millisecond
)

func newWorld(seed uint64) *world {
	w := &world{
		rand: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1e9, 0), store: mem.NewStore(), keys: cluster.KeysOf("prod"),
		quorum: true, blocked: map[string]bool{}, volumes: map[string]*image{}, apart: map[[2]string]bool{}, counts: map[string]int{},
	}
	for _, v := range []string{"cached", "plain"} {
		w.volumes[v] = &image{opened: map[string]uint64{}}
	}
	w.fleeting = map[string]*image{"a": {opened: map[string]uint64{}}, "b": {opened: map[string]uint64{}}}
	w.conf = &configuration{images: []string{"", "a"}, notes: map[string]uint64{}}
	for _, n := range []string{"n1", "n2", "n3"} {
		h := &host{world: w, name: n}
		w.nodes = append(w.nodes, h)
		h.start()
	}
	return w
}

func (w *world) failed(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

func (w *world) chance(one int) bool { return w.rand.IntN(one) == 0 }

// start begins a new process.
func (h *host) start() {
	h.counts["start"]++
	h.alive, h.stopped = true, time.Time{}
	h.incarnation = fmt.Sprintf("%s.%d", h.name, h.counts["start"])
	h.instance, h.at, h.work, h.caches = "", 0, nil, map[string]int{}
	h.leases = [2]lease{}
	h.heard, h.heardBeats = map[string]Linked{}, map[string]int{}
	h.o = NewObserver(h.keys, h.name)
	for v := range h.volumes {
		owners := []string{"n1", "n2", "n3"}
		c := Config{
			Keys: h.keys, Volume: v, Node: h.name, Incarnation: h.incarnation, Owners: owners, Cached: v == "cached",
			Stagger: 100 * time.Millisecond, Patience: time.Second, Retry: time.Second, Mute: muteTime,
		}
		if v == "plain" {
			c.Failback = 20 * time.Second
		}
		_ = h.o.Add(v, New(c)) // nothing is read yet
	}
	h.recall()
}

// kill ends the process. What it had sent to Ceph is done or not.
func (h *host) kill() {
	h.counts["kill"]++
	h.alive = false
	for _, w := range h.work {
		if h.chance(2) && !w.done {
			h.do(&w)
		}
	}
	if h.chance(2) { // its parent tells
		for _, l := range h.leases {
			_ = h.store.Revoke(l.id)
		}
	}
}

func (h *host) runs() bool { return h.alive && !h.now.Before(h.stopped) }

func (h *host) reaches() bool { return h.quorum && !h.cut }

// turn is what a process does when it has the processor.
func (h *host) turn() {
	if !h.runs() {
		return
	}
	if h.reaches() {
		h.keep()
		h.listen()
		h.follow()
	}
	h.o.Holds(h.leases[0].id, h.leases[0].deadline)
	h.inquire()
	h.link()
	h.answers()
	for _, v := range slices.Sorted(maps.Keys(h.o.Machines)) {
		h.step(v)
	}
}

// keep keeps both leases, and what is stored with them.
func (h *host) keep() {
	sent := h.now
	for i, ttl := range []time.Duration{leaseTTL, pulseTTL} {
		l := &h.leases[i]
		if l.id != 0 && h.store.KeepAlive(h.now, l.id) != nil {
			*l = lease{}
		}
		if l.id == 0 {
			l.id = h.store.Grant(h.now, ttl)
		}
		l.deadline = sent.Add(ttl)
	}
	items, _ := h.store.Get(h.keys.Pulse(h.name))
	if len(items) == 0 || items[0].Lease != h.leases[1].id {
		_, _ = h.store.Commit(nil, []cluster.Change{{Key: h.keys.Pulse(h.name), Value: []byte(h.incarnation), Lease: h.leases[1].id}})
	}
	if items, _ = h.store.Get(h.keys.Node(h.name)); len(items) == 0 {
		_, _ = h.store.Commit([]cluster.Condition{{Key: h.keys.Node(h.name)}}, []cluster.Change{{Key: h.keys.Node(h.name), Value: Node{Incarnation: h.incarnation}.Encode(), Lease: h.leases[0].id}})
	}
}

// listen hears some of what has happened, or all.
func (h *host) listen() {
	if h.now.Before(h.deaf) {
		return
	}
	if h.at == 0 || h.chance(500) {
		items, at := h.store.Get(h.keys.All())
		h.at = at
		if err := h.o.Begin(items, at, h.now); err != nil {
			h.failed("%s reads: %v", h.name, err)
		}
		return
	}
	b := h.store.Since(h.keys.All(), h.at)
	if b.Err != nil {
		h.at = 0
		return
	}
	for i, e := range b.Events {
		if h.chance(20) && (i == 0 || b.Events[i-1].Modified < e.Modified) {
			return // the rest comes later
		}
		if _, err := h.o.See(e, h.now); err != nil {
			h.failed("%s sees: %v", h.name, err)
		}
		h.at = e.Modified
	}
}

// inquire notes whether Ceph answers.
func (h *host) inquire() {
	switch {
	case !h.sick && !h.cephAway:
		h.silent, h.answered = time.Time{}, h.now
	case h.silent.IsZero():
		h.silent = h.now
	}
}

// mute is since when Ceph is known not to answer; zero: it does.
func (h *host) mute() (since time.Time) {
	if h.now.Sub(h.silent) > muteTime/4 {
		since = h.silent
	}
	return since
}

// link says something to the other nodes, and hears what they have said.
func (h *host) link() {
	h.beat = Linked{Incarnation: h.incarnation}
	switch {
	case !h.mute().IsZero():
		h.beat.Silent = []string{"ceph"}
	case h.now.Sub(h.answered) < muteTime:
		h.beat.Stores = []string{"ceph"}
	}
	h.beats++
	for _, v := range slices.Sorted(maps.Keys(h.o.Machines)) {
		if h.o.Machines[v].Without() {
			h.beat.Without = append(h.beat.Without, v)
		}
	}
	for _, o := range h.world.nodes {
		switch {
		case o == h || h.apart[[2]string{o.name, h.name}] || h.heardBeats[o.name] == o.beats:
		default:
			l := o.beat
			l.Until = h.now.Add(pulseTTL)
			h.heard[o.name], h.heardBeats[o.name] = l, o.beats
		}
		if !o.alive && !h.apart[[2]string{o.name, h.name}] {
			delete(h.heard, o.name) // its connections end with it
		}
	}
	h.o.Links(maps.Clone(h.heard))
}

// spares looks whether a claim takes a volume from a node that says that it serves it, and that Ceph
// answers it, or that this node has no better answer.
func (h *host) spares(volume string, m *Machine, a *Action) {
	l := h.o.View.Linked[m.record.Node]
	heard := l.Incarnation == m.record.Incarnation && h.now.Before(l.Until) && !slices.Contains(l.Without, volume)
	powerless := slices.Contains(l.Silent, "ceph") && h.mute().IsZero()
	if !heard || powerless || m.record.Node == h.name || m.record.Standing != Owned {
		return
	}
	if _, lives := h.o.View.Nodes[m.record.Node]; !lives {
		h.counts["spared"]++
	}
	if a.Kind == Commit && a.Record.Node == h.name && a.Record.Standing == Claiming {
		h.failed("%s claims %s of %s, which it hears", h.name, volume, m.record.Node)
	}
}

// answers ends actions.
func (h *host) answers() {
	var left []work
	ended := h.work
	h.work = nil
	for _, w := range ended {
		switch {
		case h.now.Before(w.at):
			left = append(left, w)
			continue
		case !w.done && !h.do(&w):
			left = append(left, w)
			continue
		}
		if w.a.Kind == Open && w.out.Err == nil {
			h.caches[w.volume] = h.image(w.volume, w.m).value
		}
		w.m.Ended(w.out, h.now)
	}
	h.work = append(h.work, left...)
}

var errAway = errors.New("no answer")

// do does what an action does; false: it does not answer yet.
func (h *host) do(w *work) bool {
	v := h.image(w.volume, w.m)
	w.done = true
	if w.a.Kind == Commit {
		h.commit(w)
		return true
	}
	if h.sick || h.cephAway {
		if h.alive && h.now.Sub(w.at) < limit {
			w.done = false
			return false
		}
		w.out.Err, w.out.Late = errAway, h.chance(2)
		return true
	}
	switch w.a.Kind {
	case Connect:
		if h.instance == "" || h.blocked[h.instance] || slices.Contains(w.a.Instances, h.instance) {
			h.instances++
			h.instance = fmt.Sprintf("%s/%d", h.incarnation, h.instances)
		}
		w.out.Address = h.instance
	case Fence:
		h.fence(w)
	case Open:
		w.out = h.open(w, v)
	case Close:
		h.close(v)
	}
	return true
}

func (h *host) commit(w *work) {
	switch {
	case !h.reaches():
		w.out.Err = cluster.ErrNoQuorum
	case h.chance(10) && !h.calm:
		w.out.Err = cluster.ErrUnknown
		if h.chance(2) {
			_, _ = h.store.Commit(w.a.Conditions, w.a.Changes)
		}
	default:
		w.out.Revision, w.out.Err = h.store.Commit(w.a.Conditions, w.a.Changes)
	}
	switch {
	case errors.Is(w.out.Err, cluster.ErrConflict):
		h.counts["conflict"]++
	case w.out.Err == nil && w.volume == fleeting:
		h.claims(w.m, &w.a)
	}
}

func (h *host) fence(w *work) {
	h.counts["fence"]++
	v := h.image(w.volume, w.m)
	for _, a := range w.a.Instances {
		if epoch := v.opened[a]; epoch > w.a.Epoch {
			h.failed("%s fences %s for epoch %d of %s, which has it since epoch %d", h.name, a, w.a.Epoch, w.volume, epoch)
		}
		h.blocked[a] = true
	}
}

// open takes the lock as backstore/rbd does in a cluster: only from those that are named,
// and from who is dead by Ceph's word.
func (h *host) open(w *work, v *image) (o Outcome) {
	address := w.a.Claimed()
	switch {
	case h.blocked[address] || !h.has(address):
		return Outcome{Err: errors.New("fenced")}
	case v.lock != "" && v.lock != address && !slices.Contains(w.a.Instances, v.lock) && !h.blocked[v.lock]:
		h.counts["refused"]++
		return Outcome{Err: errors.New("somebody else has the lock")}
	case v.lock != "" && v.lock != address && !h.blocked[v.lock]:
		h.failed("%s takes %s from %s, which is not fenced", h.name, w.volume, v.lock)
	}
	if w.volume == fleeting && !h.enters(w.m, w.a.Epoch) {
		return Outcome{Err: errors.New("it was open for a later claim")}
	}
	h.counts["open"]++
	v.lock, v.opened[address] = address, w.a.Epoch
	return Outcome{Disk: Disk{Address: address, Size: 1 << 30, BlockSize: 512}}
}

func (h *host) close(v *image) {
	h.counts["close"]++
	if h.has(v.lock) && !h.blocked[v.lock] {
		v.lock = ""
	}
}

// has reports whether an instance is of this process.
func (h *host) has(address string) bool { return strings.HasPrefix(address, h.incarnation+"/") }

// step asks a machine what is to be done.
func (h *host) step(volume string) {
	m := h.o.Machines[volume]
	m.Silent("ceph", h.mute())
	m.Refused(func(address string) bool { return h.blocked[address] && h.mute().IsZero() })
	todo, next := m.Step(&h.o.View, h.now)
	if !next.IsZero() && !next.After(h.now) {
		h.failed("%s wants to be asked at once again", h.name)
	}
	h.spares(volume, m, &Action{})
	for _, a := range todo {
		if a.Kind < Serve {
			h.spares(volume, m, &a)
			if a.Record.Standing == Free && m.disk != nil {
				h.counts["yield"]++
				if h.cephAway && h.now.Sub(h.awaySince) > pulseTTL+muteTime {
					h.failed("%s gives %s away, and Ceph answers nobody", h.name, volume)
				}
			}
			took := time.Duration(h.rand.IntN(30)) * time.Millisecond
			if h.chance(20) && !h.calm {
				took *= 30
			}
			h.work = append(h.work, work{volume: volume, m: m, a: a, at: h.now.Add(took)})
		}
	}
}

// write is a command at a node that serves.
func (h *host) write(volume string) {
	m := h.o.Machines[volume]
	if m == nil || !h.runs() || m.access.kind != Serve || h.sick || h.cephAway {
		return
	}
	v := h.image(volume, m)
	if v.lock != m.disk.Address || h.blocked[m.disk.Address] {
		h.counts["lost"]++
		if h.instance == m.disk.Address {
			h.instance = ""
		}
		m.Lost(m.epoch)
		return
	}
	v.value++
	if h.chance(10) && !h.calm {
		h.kill() // before the answer is sent
		return
	}
	v.acked, h.caches[volume] = v.value, v.value
	h.counts["write"]++
}

// read is a command at a node that serves, from its cache if its lease lasts.
func (h *host) read(volume string) {
	m := h.o.Machines[volume]
	if m == nil || !h.runs() || m.access.kind != Serve {
		return
	}
	v := h.image(volume, m)
	if !h.now.Before(m.until) {
		h.counts["bypass"]++
		return
	}
	h.counts["hit"]++
	if h.caches[volume] < v.acked {
		h.failed("%s reads version %d of %s from its cache, and %d was acknowledged", h.name, h.caches[volume], volume, v.acked)
	}
}

// trusted counts the nodes that may serve cached reads.
func (w *world) trusted(volume string) {
	var who []string
	for _, h := range w.nodes {
		if m := h.o.Machines[volume]; h.alive && m.access.kind == Serve && w.now.Before(m.until) {
			who = append(who, fmt.Sprintf("%s (epoch %d)", h.name, m.epoch))
		}
	}
	if len(who) > 1 {
		w.failed("%s has %d nodes that serve cached reads: %v", volume, len(who), who)
	}
}
