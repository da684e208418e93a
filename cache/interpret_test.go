package cache

import (
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

func geometry(t testing.TB, l Layout) *Geometry {
	t.Helper()
	g, err := NewGeometry(l)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func split(g *Geometry, lu uint32, off int64, n int) []Piece {
	out := make([]Piece, 2048)
	pieces, _ := g.Split(lu, off, n, out)
	return out[:pieces]
}

// Section C, 1: neighbours in one partition save locks.
func TestNeighboursSharePartitions(t *testing.T) {
	for _, c := range []struct{ group, pieces, partitions int }{{1, 128, 128}, {128, 128, 1}} {
		g := geometry(t, Layout{BlockSize: 4096, Neighbours: c.group, Partitions: 128, Nodes: 2})
		for _, off := range []int64{0, 512 << 10, 1 << 40} {
			got := split(g, 0, off, 512<<10)
			pids := map[uint32]bool{}
			for _, p := range got {
				pids[p.Partition] = true
			}
			if len(got) != c.pieces || len(pids) != c.partitions {
				t.Errorf("G=%d, offset %d: %d sub-requests in %d partitions, expected %d in %d", c.group, off, len(got), len(pids), c.pieces, c.partitions)
			}
		}
		got := split(g, 0, 256<<10, 512<<10)
		pids := map[uint32]bool{}
		for _, p := range got {
			pids[p.Partition] = true
		}
		if c.group == 128 && len(pids) != 2 {
			t.Errorf("G=128, unaligned: %d partitions, expected 2", len(pids))
		}
	}
}

// Section C, 2: most bytes win, a tie stays with the executing worker.
func TestAlgorithm1(t *testing.T) {
	g := geometry(t, Layout{BlockSize: 4096, Neighbours: 128, Partitions: 8, Nodes: 2})
	for _, c := range []struct {
		off, affinity0, affinity1 int
		worker, node              int
	}{
		{128 << 10, 384 << 10, 128 << 10, 0, 0},
		{128 << 10, 384 << 10, 128 << 10, 1, 0},
		{256 << 10, 256 << 10, 256 << 10, 0, 0},
		{256 << 10, 256 << 10, 256 << 10, 1, 1},
		{384 << 10, 128 << 10, 384 << 10, 0, 1},
	} {
		pieces := split(g, 0, int64(c.off), 512<<10)
		var a Affinity
		a.Add(pieces)
		if int(a[0]) != c.affinity0 || int(a[1]) != c.affinity1 || a.Best(2, c.worker) != c.node {
			t.Errorf("offset %d, worker on node %d: affinity %d and %d, node %d; expected %+v", c.off, c.worker, a[0], a[1], a.Best(2, c.worker), c)
		}
	}
	first := split(g, 0, 128<<10, 512<<10)
	if first[0].Block != 32 || first[len(first)-1].Block != 159 {
		t.Errorf("blocks %d to %d, expected 32 to 159", first[0].Block, first[len(first)-1].Block)
	}
	var a Affinity
	a[1], a[3] = 7, 7
	if a.Best(4, 0) != 1 || a.Best(4, 3) != 3 {
		t.Errorf("tie of nodes 1 and 3: worker 0 gets %d, worker 3 gets %d; expected 1 and 3", a.Best(4, 0), a.Best(4, 3))
	}
}

// Section C, 3: the hash and both mappings to nodes.
func TestPartitionHash(t *testing.T) {
	for _, c := range []struct {
		contiguous bool
		off        int64
		block      uint64
		pid, node  uint32
	}{
		{false, 1 << 30, 2048, 80, 0},
		{false, 1<<30 + 2<<20, 2052, 81, 1},
		{true, 1 << 30, 2048, 80, 2},
		{true, 1<<30 + 2<<20, 2052, 81, 2},
	} {
		g := geometry(t, Layout{BlockSize: 512 << 10, Neighbours: 4, Partitions: 144, Nodes: 4, Contiguous: c.contiguous})
		p := split(g, 0, c.off, 1)[0]
		if p.Block != c.block || p.Partition != c.pid || p.Node != c.node {
			t.Errorf("byte %d: block %d, partition %d, node %d; expected %+v", c.off, p.Block, p.Partition, p.Node, c)
		}
		if g.Partition(Key{0, c.block}) != c.pid {
			t.Errorf("Partition of block %d is %d, expected %d", c.block, g.Partition(Key{0, c.block}), c.pid)
		}
	}
}

// Section C, 4.
func TestSplitUnaligned(t *testing.T) {
	g := geometry(t, Layout{BlockSize: 4096, Neighbours: 1, Partitions: 1, Nodes: 1})
	got := split(g, 0, 1024, 6144)
	want := []Piece{{Block: 0, Off: 1024, Len: 3072}, {Block: 1, Off: 0, Len: 3072}}
	if !slices.Equal(got, want) {
		t.Errorf("found %+v, expected %+v", got, want)
	}
}

// Section C, 5: a forwarded request is interpreted once.
func TestForwardedOnce(t *testing.T) {
	g := geometry(t, Layout{BlockSize: 4096, Neighbours: 128, Partitions: 8, Nodes: 2})
	var threshold atomic.Int64
	threshold.Store(64 << 10)
	r0, r1 := NewRouter(g, 0, &threshold), NewRouter(g, 1, &threshold)
	out := make([]Piece, 256)
	req := Request{Off: 512 << 10, Len: 512 << 10}
	if route := r0.Route(&req, out); !route.Forward || route.Node != 1 || !req.Interpreted {
		t.Fatalf("found %+v and interpreted %v, expected a forward to node 1", route, req.Interpreted)
	}
	if route := r1.Route(&req, out); route.Forward || route.Node != 1 || route.Pieces != 128 {
		t.Fatalf("at its node: found %+v, expected it to be served there", route)
	}
	if route := r0.Route(&req, out); route.Forward || route.Node != 0 {
		t.Fatalf("interpreted and away from its node: found %+v, expected it to be served", route)
	}
	small := Request{Off: 512 << 10, Len: 4096}
	if route := r0.Route(&small, out); route.Forward || route.Node != 0 {
		t.Fatalf("small: found %+v, expected it to be served where it is", route)
	}
	if got, want := r0.Stats(), (RouterStats{2, 512 << 10, 4096, 512 << 10, 1, 1, 1}); got != want {
		t.Errorf("router 0: %+v, expected %+v", got, want)
	}
	if got, want := r1.Stats(), (RouterStats{0, 512 << 10, 0, 0, 1, 0, 0}); got != want {
		t.Errorf("router 1: %+v, expected %+v", got, want)
	}
}

// Pieces are in order, without gap, within blocks, and agree with the hash.
func TestSplitProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := Layout{
			BlockSize:  4096 << rapid.IntRange(0, 8).Draw(rt, "block"),
			Neighbours: rapid.IntRange(1, 9).Draw(rt, "neighbours"),
			Nodes:      rapid.IntRange(1, 5).Draw(rt, "nodes"),
			Contiguous: rapid.Bool().Draw(rt, "contiguous"),
		}
		l.Partitions = l.Nodes * rapid.IntRange(1, 7).Draw(rt, "perNode")
		g := geometry(t, l)
		lu := rapid.Uint32().Draw(rt, "lu")
		off := rapid.Int64Range(0, 1<<50).Draw(rt, "off")
		n := rapid.IntRange(1, 64*l.BlockSize).Draw(rt, "n")
		at := off
		for _, p := range split(g, lu, off, n) {
			if int64(p.Block)*int64(l.BlockSize)+int64(p.Off) != at || p.Len == 0 || int(p.Off+p.Len) > l.BlockSize {
				rt.Fatalf("piece %+v at byte %d", p, at)
			}
			if pid := g.Partition(Key{lu, p.Block}); pid != p.Partition || g.NodeOf(pid) != p.Node {
				rt.Fatalf("piece %+v: partition %d on node %d by the hash", p, pid, g.NodeOf(pid))
			}
			at += int64(p.Len)
		}
		if at != off+int64(n) {
			rt.Fatalf("pieces end at %d, expected %d", at, off+int64(n))
		}
	})
}

func TestSplitShortArray(t *testing.T) {
	g := geometry(t, Layout{BlockSize: 4096, Neighbours: 1, Partitions: 1, Nodes: 1})
	out := make([]Piece, 3)
	if pieces, bytes := g.Split(0, 100, 1<<20, out); pieces != 3 || bytes != 3*4096-100 {
		t.Errorf("%d pieces of %d bytes, expected 3 of %d", pieces, bytes, 3*4096-100)
	}
}

func TestMasks(t *testing.T) {
	for _, c := range []struct {
		block          int
		off, n         uint32
		touched, whole uint64
	}{
		{256 << 10, 0, 256 << 10, ^uint64(0), ^uint64(0)},
		{256 << 10, 0, 1, 1, 0},
		{256 << 10, 4095, 2, 3, 0},
		{256 << 10, 512, 8192, 7, 2},
		{256 << 10, 252 << 10, 4096, 1 << 63, 1 << 63},
		{4096, 0, 4096, 1, 1},
		{4096, 512, 512, 1, 0},
		{1 << 20, 16 << 10, 16 << 10, 2, 2},
		{512 << 10, 0, 12 << 10, 3, 1},
	} {
		g := geometry(t, Layout{BlockSize: c.block, Neighbours: 1, Partitions: 1, Nodes: 1})
		if touched, whole := g.Masks(c.off, c.n); touched != c.touched || whole != c.whole {
			t.Errorf("block %d, %d bytes at %d: %#x and %#x, expected %#x and %#x", c.block, c.n, c.off, touched, whole, c.touched, c.whole)
		}
	}
}

func TestLayoutRefused(t *testing.T) {
	good := Layout{BlockSize: 4096, Neighbours: 1, Partitions: 4, Nodes: 2}
	for _, change := range []func(*Layout){
		func(l *Layout) { l.BlockSize = 2048 },
		func(l *Layout) { l.BlockSize = 6000 },
		func(l *Layout) { l.BlockSize = 2 << 20 },
		func(l *Layout) { l.Neighbours = 0 },
		func(l *Layout) { l.Nodes = 0 },
		func(l *Layout) { l.Nodes = MaxNodes + 1 },
		func(l *Layout) { l.Partitions = 5 },
		func(l *Layout) { l.Partitions = 0 },
	} {
		l := good
		change(&l)
		if _, err := NewGeometry(l); err == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
}

func TestTuner(t *testing.T) {
	for _, c := range []struct {
		name                    string
		handover, local, remote int64 // ns, and ns per 1000 bytes
		want                    int64
	}{
		{"break-even at 30,769 bytes", 8000, 53, 313, 32 << 10},
		{"exactly a power of two", 8192, 0, 250, 32 << 10},
		{"dear hand-over", 1 << 30, 53, 313, NeverForward},
		{"cheap hand-over", 1, 53, 313, 4 << 10},
		{"remote memory is not slower", 8000, 313, 313, NeverForward},
		{"remote memory is faster", 8000, 313, 53, NeverForward},
	} {
		tuner := NewTuner(64 << 10)
		if got := tuner.Adapt(); got != 64<<10 {
			t.Errorf("%s: %d bytes without samples, expected the start", c.name, got)
		}
		for range 100 {
			tuner.HandedOver(c.handover)
			tuner.Copied(1000, false, c.local)
			tuner.Copied(1000, true, c.remote)
		}
		if got := tuner.Adapt(); got != c.want {
			t.Errorf("%s: %d bytes, expected %d", c.name, got, c.want)
		}
	}
}

// Old samples fade, and a kind without new ones keeps its mean.
func TestTunerFollows(t *testing.T) {
	tuner := NewTuner(64 << 10)
	load := func(remote int64) {
		for range 100 {
			tuner.HandedOver(8000)
			tuner.Copied(1000, false, 53)
			tuner.Copied(1000, true, remote)
		}
	}
	load(313)
	tuner.Adapt()
	for range 20 {
		load(103)
		tuner.Adapt()
	}
	if got := tuner.Adapt(); got != 256<<10 {
		t.Errorf("%d bytes after the link became faster, expected %d", got, 256<<10)
	}
	for range 50 {
		if got := tuner.Adapt(); got != 256<<10 {
			t.Fatalf("%d bytes without new samples, expected no change", got)
		}
	}
}

// Owner says of any request what Algorithm 1 says over all its pieces.
func TestOwnerIsAlgorithm1(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 5).Draw(rt, "nodes")
		g := geometry(t, Layout{BlockSize: 4096 << rapid.IntRange(0, 6).Draw(rt, "block"), Neighbours: rapid.IntRange(1, 9).Draw(rt, "neighbours"),
			Nodes: nodes, Partitions: nodes * rapid.IntRange(1, 4).Draw(rt, "perNode")})
		var threshold atomic.Int64
		threshold.Store(rapid.Int64Range(0, 1<<20).Draw(rt, "threshold"))
		worker := rapid.IntRange(-1, nodes-1).Draw(rt, "worker")
		lu, off, n := rapid.Uint32Range(0, 9).Draw(rt, "lu"), rapid.Int64Range(0, 1<<40).Draw(rt, "off"), rapid.IntRange(1, 1<<20).Draw(rt, "n")
		var a Affinity
		a.Add(split(g, lu, off, n))
		best := a.Best(nodes, worker)
		node, forward := NewRouter(g, worker, &threshold).Owner(lu, off, n)
		if node != best || forward != (best != worker && int64(n) >= threshold.Load()) {
			rt.Fatalf("%d bytes at %d: node %d, forward %v; expected node %d, worker %d, threshold %d", n, off, node, forward, best, worker, threshold.Load())
		}
	})
}
