package nest

import (
	"slices"
	"testing"

	"lunar/scripts/sim/experiment/experimenttest"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments(), experimenttest.Exceptions{Slow: func(id string) bool { return id != "nest-pm" && id != "nest-tpcc" }})
}

// TestRead: 4 KiB over one switch, where a device needs 60 us, take 63,077.76 ns.
func TestRead(t *testing.T) {
	var k kernel.Kernel
	f := NewStar(&k, 2, line, Queue{})
	s := f.NewServer(1, NewSCM(&k, 1, 60*net.Microsecond, 0), 0)
	p := f.Connect(High, func(Tag, bool) net.Control { return net.Open{} }, 0, s)
	took := int64(0)
	r := &Request{Tag: High, Bytes: 4096}
	r.Done = func(now int64) { took = now - r.At }
	p.Ask(r)
	k.Drain()
	if took != 63_077_760 {
		t.Errorf("took %d ps, expected 63,077,760", took)
	}
}

// TestArbiter: U2 H4 M3 L2 go U U H H H M M L H M L.
func TestArbiter(t *testing.T) {
	var a arbiter[*Command]
	for tag, n := range [Tags]int{2, 4, 3, 2} {
		for range n {
			a.push(&Command{Tag: Tag(tag)})
		}
	}
	var got []Tag
	for a.len() > 0 {
		got = append(got, a.pop().Tag)
	}
	if want := []Tag{Urgent, Urgent, High, High, High, Medium, Medium, Low, High, Medium, Low}; !slices.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
}

// TestArbiterWithoutQoS: all go in order of arrival.
func TestArbiterWithoutQoS(t *testing.T) {
	a := arbiter[*Command]{fifo: true}
	want := []Tag{Low, Urgent, High, Low}
	for _, tag := range want {
		a.push(&Command{Tag: tag})
	}
	for i, tag := range want {
		if got := a.pop().Tag; got != tag {
			t.Errorf("command %d is %s, expected %s", i, got, tag)
		}
	}
}

// TestFatTree: paths have 2, 4 and 6 links, begin and end at their hosts, and join.
func TestFatTree(t *testing.T) {
	var k kernel.Kernel
	f := NewFatTree(&k, 4, line, Queue{})
	if f.hosts != 16 {
		t.Fatalf("%d hosts, expected 16", f.hosts)
	}
	for from := range f.hosts {
		for to := range f.hosts {
			want := 6
			switch {
			case from/2 == to/2:
				want = 2
			case from/4 == to/4:
				want = 4
			}
			p := f.Path(from, to)
			if len(p) != want || p[0] != f.up[from] || p[want-1] != f.down[to] || slices.Contains(p, nil) {
				t.Errorf("from %d to %d: %d links, expected %d", from, to, len(p), want)
			}
		}
	}
}

// TestPages: a command ends with its last page; chips work at once.
func TestPages(t *testing.T) {
	var k kernel.Kernel
	d := NewSSD(&k, Flash{Chips: 1, PageBytes: 4096, Read: 10, Write: 30}, kernel.NewRand(1, 1))
	var ends []int64
	for _, c := range []Command{{Bytes: 8192}, {Bytes: 1, Write: true}} {
		c.Done = func(now int64) { ends = append(ends, now) }
		d.Submit(&c)
	}
	k.Drain()
	if !slices.Equal(ends, []int64{20, 50}) {
		t.Errorf("ends at %v, expected 20 and 50", ends)
	}
}
