package nest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/experiment/experimenttest"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments())
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

// TestCalibrate: costs come out of what is measured with them, and both ends hinder each other
// only while both work.
func TestCalibrate(t *testing.T) {
	server, client := cost{6, 1}, cost{4, 0.5}
	alone := costs{end{server, server}, end{client, client}, 1}
	one, many := alone.closed(1, 1, 1, false), alone.closed(1, deep, 1, true)
	for name, c := range map[string]struct{ found, want cost }{
		"server": {calibrate(one.latency*(1-one.busy), many.latency*(1-many.busy), earlySends), server},
		"client": {calibrate(one.latency*one.busy, many.latency*many.busy, 0), client},
	} {
		if math.Abs(c.found.pass-c.want.pass) > 0.1 || math.Abs(c.found.each-c.want.each) > 0.02 {
			t.Errorf("%s: found %v, expected %v", name, c.found, c.want)
		}
	}
	slow := alone
	slow.slow = 1.5
	for depth, alike := range map[int]bool{1: true, 8: true, deep: false} {
		if a, b := alone.closed(1, depth, 1, false), slow.closed(1, depth, 1, false); (a == b) != alike {
			t.Errorf("depth %d: found %v and, with ends that hinder each other, %v", depth, a, b)
		}
	}
	if a, b := alone.closed(1, deep, 1, true), slow.closed(1, deep, 1, true); a != b {
		t.Errorf("in turns: found %v and, with ends that hinder each other, %v", a, b)
	}
	many = slow.closed(1, deep, 1, false)
	if slow.slowdown(1, many.latency); math.Abs(slow.slow-1.5) > 0.01 {
		t.Errorf("found %v, expected 1.5", slow.slow)
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

// TestAdmission: urgent traffic gets a fifth of a link, over all who send it there.
func TestAdmission(t *testing.T) {
	var k kernel.Kernel
	f := NewStar(&k, 4, line, Queue{})
	for i, want := range []bool{true, true, false} {
		if got := f.Admit(f.Path(i, 3), 9); got != want {
			t.Errorf("host %d asks for 9 Gb/s more: admitted %v, expected %v", i, got, want)
		}
	}
	if !f.Admit(f.Path(2, 0), 9) {
		t.Error("what was refused on one link is still reserved on another")
	}
}

// TestReplay: a trace is replayed at its times; a bad one is refused with the line.
func TestReplay(t *testing.T) {
	var k kernel.Kernel
	f := NewStar(&k, 2, line, Queue{})
	s := f.NewServer(1, NewSCM(&k, 1, 60*net.Microsecond, 0), 0)
	trace, err := readTrace(strings.NewReader("0 R 0 4096 1\n1000000 W 8192 512 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	p := &replay{kernel: &k, trace: trace, ended: func(_ entry, latency int64) { got = append(got, latency) }}
	for tag := range Tags {
		p.paths[tag] = f.Connect(tag, func(Tag, bool) net.Control { return net.Open{} }, 0, s)
	}
	p.start()
	k.Drain()
	if len(got) != 2 || got[0] != 63_077_760 {
		t.Errorf("latencies %v, expected two, the first of 63,077,760 ps", got)
	}
	for text, want := range map[string]string{
		"0 R 0 4096": "line 1", "0 X 0 1 1": "R or W", "0 R 0 1 4": "class 4", "0 R 0 0 1": "0 bytes", "5 R 0 1 1\n4 R 0 1 1": "line 2",
	} {
		if _, err := readTrace(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: found error %v, expected one with %q", text, err, want)
		}
	}
}

// TestSameSeed: a seed gives one run.
func TestSameSeed(t *testing.T) {
	env := &experiment.Env{Seed: 3, Reduced: true}
	m := mixed{rule: net.QTCP, hosts: 1, share: 0.1, bytes: 128, priority: true}
	first, second := newMixture(env, m).run(env), newMixture(env, m).run(env)
	if !slices.Equal(first.storage, second.storage) || first.p99 != second.p99 {
		t.Errorf("two runs of one seed: %+v and %+v", first, second)
	}
}
