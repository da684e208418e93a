package iser

// tags are the buffers that the initiator has told of with a command, until the
// command's response: a table of fixed size, by Initiator Task Tag.
type tags struct {
	buckets []int32 // index into nodes plus 1
	nodes   []tag
	free    int32
	shift   uint
}

// tag is one command's buffers.
type tag struct {
	itt         uint32
	next        int32
	read, write remote
	unsolicited uint32 // bytes of Data-Out that came with the command
}

func newTags(most int) *tags {
	bits := uint(4)
	for 1<<bits < 2*most {
		bits++
	}
	t := &tags{buckets: make([]int32, 1<<bits), nodes: make([]tag, most), shift: 32 - bits}
	for i := range t.nodes {
		t.nodes[i].next, t.free = t.free, int32(i+1)
	}
	return t
}

func (t *tags) bucket(itt uint32) *int32 { return &t.buckets[itt*0x9e3779b1>>t.shift] }

// find returns the buffers of a task, nil if there are none.
func (t *tags) find(itt uint32) *tag {
	for at := *t.bucket(itt); at != 0; at = t.nodes[at-1].next {
		if n := &t.nodes[at-1]; n.itt == itt {
			return n
		}
	}
	return nil
}

// add returns a place for a task's buffers, its old one if it has one; nil if
// there is none left.
func (t *tags) add(itt uint32) *tag {
	if n := t.find(itt); n != nil {
		return n
	}
	if t.free == 0 {
		return nil
	}
	at, b := t.free, t.bucket(itt)
	n := &t.nodes[at-1]
	t.free = n.next
	n.itt, n.next, *b = itt, *b, at
	return n
}

// remove forgets a task's buffers.
func (t *tags) remove(itt uint32) {
	for link := t.bucket(itt); *link != 0; link = &t.nodes[*link-1].next {
		at := *link
		if n := &t.nodes[at-1]; n.itt == itt {
			*link, n.next, t.free = n.next, t.free, at
			return
		}
	}
}
