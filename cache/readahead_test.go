package cache

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func detector(t testing.TB, c ReadaheadConfig) *Detector {
	t.Helper()
	d, err := NewDetector(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const noLimit = int64(1) << 60

// The first window is that of four requests, or the configured one; it doubles whenever
// half of it is used, up to the largest.
func TestReadaheadGrows(t *testing.T) {
	d := detector(t, ReadaheadConfig{Streams: 4, Start: 64 << 10, Max: 256 << 10})
	const n = 32 << 10
	for i, want := range []Prefetch{
		{}, {}, {96 << 10, 64 << 10}, {160 << 10, 96 << 10}, {}, {256 << 10, 192 << 10}, {}, {}, {}, {448 << 10, 128 << 10},
	} {
		if got := d.Read(1, int64(i)*n, n, noLimit, noLimit); got != want {
			t.Errorf("read %d: %+v, expected %+v", i, got, want)
		}
	}
}

// A deep queue's requests come out of order and are still one stream.
func TestReadaheadToleratesReordering(t *testing.T) {
	d := detector(t, ReadaheadConfig{Streams: 4, Start: 256 << 10, Max: 1 << 20})
	const n = 32 << 10
	end := int64(0)
	for _, i := range []int64{0, 1, 3, 2, 5, 4, 7, 6, 8, 11, 9, 10} {
		if p := d.Read(1, i*n, n, noLimit, noLimit); p.Len != 0 {
			end = p.Off + p.Len
		}
	}
	if d.streams.Len() != 1 || end < 12*n+128<<10 {
		t.Errorf("%d streams, read ahead up to %d; expected one, and at least half a window beyond %d", d.streams.Len(), end, 12*n)
	}
}

// Sequential streams of several LUs are told apart, are followed across zones,
// ask for every byte once and for nothing beyond the end or the budget.
func TestReadaheadCoversStreams(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := ReadaheadConfig{Streams: 8, Start: rapid.Int64Range(1, 1<<20).Draw(rt, "start")}
		c.Max = c.Start * rapid.Int64Range(1, 16).Draw(rt, "max")
		d := detector(t, c)
		size := rapid.Int64Range(1<<20, 64<<20).Draw(rt, "size")
		streams := rapid.Uint32Range(1, 4).Draw(rt, "streams")
		var at, ahead [4]int64
		for range 200 {
			lu := rapid.Uint32Range(0, streams-1).Draw(rt, "lu")
			n := min(rapid.Int64Range(1, 1<<20).Draw(rt, "n"), size-at[lu])
			if n == 0 {
				continue
			}
			budget := rapid.Int64Range(0, 2<<20).Draw(rt, "budget")
			p := d.Read(lu, at[lu], n, size, budget)
			at[lu] += n
			if p.Len == 0 {
				continue
			}
			if p.Off < ahead[lu] || p.Off < at[lu] || p.Off+p.Len > size || p.Len > min(budget, c.Max) || p.Off+p.Len > at[lu]+c.Max {
				rt.Fatalf("%+v after a read up to %d, with %d asked for before, of %d and a budget of %d", p, at[lu], ahead[lu], size, budget)
			}
			ahead[lu] = p.Off + p.Len
		}
	})
}

// Small reads in a row begin with a small window.
func TestReadaheadBeginsSmall(t *testing.T) {
	d := detector(t, ReadaheadConfig{Streams: 4, Start: 128 << 10, Max: 1 << 20})
	for i, want := range []Prefetch{{}, {}, {12 << 10, 16 << 10}, {}, {28 << 10, 24 << 10}} {
		if got := d.Read(1, int64(i)*4096, 4096, noLimit, noLimit); got != want {
			t.Errorf("read %d: %+v, expected %+v", i, got, want)
		}
	}
}

// Of random reads within a small range, some follow others by chance: what is read ahead
// for them is little beside what they ask for.
func TestReadaheadOfRandomIsLittle(t *testing.T) {
	for _, n := range []int64{4 << 10, 64 << 10} {
		d := detector(t, ReadaheadConfig{Streams: 32, Start: 128 << 10, Max: 1 << 20})
		const size, reads = 384 << 20, 100_000
		r := rand.New(rand.NewPCG(1, 2))
		ahead := int64(0)
		for range reads {
			ahead += d.Read(1, r.Int64N(size/n)*n, n, size, noLimit).Len
		}
		if most := reads * n / 10; ahead > most {
			t.Errorf("reads of %d: %d bytes read ahead of %d asked for, expected at most %d", n, ahead, reads*n, most)
		}
	}
}

// Random reads are not taken for streams and allocate nothing.
func TestReadaheadIgnoresRandom(t *testing.T) {
	d := detector(t, ReadaheadConfig{Streams: 4, Start: 64 << 10, Max: 1 << 20})
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	allocs := testing.AllocsPerRun(10000, func() {
		if d.Read(1, r.Int64N(1<<28)<<12, 4096, noLimit, noLimit).Len != 0 {
			found++
		}
	})
	if found != 0 || allocs != 0 {
		t.Errorf("%d streams and %v allocations per read, expected none", found, allocs)
	}
}

// More streams than are followed push the oldest out; none is lost or doubled.
func TestReadaheadForgets(t *testing.T) {
	d := detector(t, ReadaheadConfig{Streams: 2, Start: 64 << 10, Max: 1 << 20})
	for round := range int64(100) {
		for lu := range uint32(5) {
			d.Read(lu, round*4096, 4096, noLimit, noLimit)
		}
	}
	if d.streams.Len() > 2 || d.streams.Len()+len(d.spare) != 3 {
		t.Errorf("%d streams and %d spare, expected 3 in all", d.streams.Len(), len(d.spare))
	}
	if _, err := NewDetector(ReadaheadConfig{Streams: 1, Start: 2, Max: 1}); err == nil {
		t.Error("a first window above the largest was accepted")
	}
}
