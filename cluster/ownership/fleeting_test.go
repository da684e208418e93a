package ownership

import "time"

// fleeting is a volume of the cluster's configuration that comes, goes and comes again, in one
// image or another.
const fleeting = "fleeting"

// configuration is what all nodes are to have: the image of fleeting by revision; empty: it is
// not configured.
type configuration struct {
	images []string
	last   struct { // that was claimed, of the latest revision
		image    string
		revision int64
	}
	notes map[string]uint64 // by image: the epoch that it was open for last
}

func (c *configuration) newest() int64 { return int64(len(c.images)) - 1 }

// revise makes a revision. Another image needs one without the volume in between.
func (w *world) revise() {
	next := []string{"", "a", "b"}[w.rand.IntN(3)]
	if was := w.conf.images[w.conf.newest()]; was != "" && next != was {
		next = ""
	}
	w.conf.images = append(w.conf.images, next)
}

// recall is what a process begins with: the newest revision if the state answers, else that which
// the node had last.
func (h *host) recall() {
	if h.reaches() {
		h.knows = h.conf.newest()
	}
	h.parting = 0
	if h.conf.images[h.knows] != "" {
		h.addFleeting()
	}
}

func (h *host) addFleeting() {
	_ = h.o.Add(fleeting, New(Config{
		Keys: h.keys, Volume: fleeting, Node: h.name, Incarnation: h.incarnation, Owners: []string{"n1", "n2", "n3"},
		Image: h.conf.images[h.knows], Revision: h.knows,
		Stagger: 100 * time.Millisecond, Patience: time.Second, Retry: time.Second, Mute: muteTime,
	}))
}

// follow goes by the newest revision, unless that has another image and the one in between was
// missed: it stays behind until it starts again.
func (h *host) follow() {
	m, was, now := h.o.Machines[fleeting], h.conf.images[h.knows], h.conf.images[h.conf.newest()]
	switch {
	case h.parting > 0:
		gaveUp := m.Closed() && h.chance(50) // nobody can be told
		if gaveUp && !m.Idle() {
			h.counts["gave up"]++
		}
		if m.Idle() || gaveUp {
			delete(h.o.Machines, fleeting)
			h.knows, h.parting = h.parting, 0
		}
	case h.knows == h.conf.newest() || h.now.Before(h.stuck):
	case was == now:
		if h.knows = h.conf.newest(); m != nil {
			m.Configure([]string{"n1", "n2", "n3"}, false, 0, h.knows)
		}
	case was == "":
		h.knows = h.conf.newest()
		h.addFleeting()
	case now == "":
		m.Stop()
		h.parting = h.conf.newest()
	}
}

// behind reports that it follows no more until it starts again.
func (h *host) behind() bool {
	was, now := h.conf.images[h.knows], h.conf.images[h.conf.newest()]
	return h.parting == 0 && was != "" && now != "" && was != now
}

// forget has the state forget the volume if this node does not have it by the newest revision.
func (h *host) forget() {
	if !h.runs() || !h.reaches() || h.parting > 0 || h.knows != h.conf.newest() || h.conf.images[h.knows] != "" {
		return
	}
	standing := h.o.Owners()[fleeting].Standing
	_, conditions, changes := h.o.Forget([]string{fleeting}, h.knows, h.now)
	if len(changes) == 0 {
		return
	}
	if _, err := h.store.Commit(conditions, changes); err == nil {
		h.counts["forgotten"]++
		h.counts["forgotten, "+string(standing)]++
	}
}

// image is what a machine's volume is in.
func (h *host) image(volume string, m *Machine) *image {
	if volume == fleeting {
		return h.fleeting[m.config.Image]
	}
	return h.volumes[volume]
}

// claims judges that a node has claimed fleeting, and notes it.
func (h *host) claims(m *Machine, a *Action) {
	if a.Record.Standing != Claiming {
		return
	}
	if c := h.conf; m.config.Revision > c.last.revision {
		c.last.image, c.last.revision = m.config.Image, m.config.Revision
	}
	if last := h.conf.notes[m.config.Image]; m.modified == 0 && a.Record.Epoch <= last {
		h.failed("%s claims image %s for epoch %d, which was open for epoch %d: it is not opened", h.name, m.config.Image, a.Record.Epoch, last)
	}
}

// enters has a node open an image of fleeting, and notes the epoch; false: it was open for a later
// one.
func (h *host) enters(m *Machine, epoch uint64) bool {
	c, image := h.conf, m.config.Image
	if c.notes[image] > epoch {
		return false
	}
	if image != c.last.image && m.config.Revision < c.last.revision {
		h.failed("%s opens image %s by revision %d, and image %s was claimed by revision %d", h.name, image, m.config.Revision, c.last.image, c.last.revision)
	}
	h.counts["fleeting"]++
	c.notes[image] = epoch
	return true
}
