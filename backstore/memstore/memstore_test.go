package memstore_test

import (
	"bytes"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const size = 64 * memstore.Sector

func open(t *testing.T) (*memstore.Store, *backstoretest.Client) {
	t.Helper()
	s, err := memstore.New(memstore.Config{Size: size})
	if err != nil {
		t.Fatal(err)
	}
	return s, backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
}

func TestNewRefuses(t *testing.T) {
	for _, n := range []int64{0, -512, 513} {
		if _, err := memstore.New(memstore.Config{Size: n}); err == nil {
			t.Errorf("a store of %d bytes was made", n)
		}
	}
}

func write(n byte, fua bool) backstore.Op {
	return backstore.Op{Kind: backstore.Write, FUA: fua, Data: bytes.Repeat([]byte{n}, memstore.Sector)}
}

// outcomes returns which first bytes of the store crashes leave.
func outcomes(s *memstore.Store) map[byte]bool {
	found := map[byte]bool{}
	for seed := range uint64(200) {
		found[s.CrashClone(seed).Bytes()[0]] = true
	}
	return found
}

// TestWhatACrashLeaves writes to one sector; a version that is older than a
// stable one never comes back.
func TestWhatACrashLeaves(t *testing.T) {
	flush := backstore.Op{Kind: backstore.Flush}
	zeroes := backstore.Op{Kind: backstore.WriteZeroes, Len: memstore.Sector}
	for name, test := range map[string]struct {
		ops  []backstore.Op
		want []byte
	}{
		"cached":            {[]backstore.Op{write(1, false), write(2, false)}, []byte{0, 1, 2}},
		"flushed":           {[]backstore.Op{write(1, false), write(2, false), flush}, []byte{2}},
		"flushed before":    {[]backstore.Op{write(1, false), flush, write(2, false)}, []byte{1, 2}},
		"fua":               {[]backstore.Op{write(1, true)}, []byte{1}},
		"fua after cached":  {[]backstore.Op{write(1, false), write(2, true)}, []byte{2}},
		"fua before cached": {[]backstore.Op{write(1, true), write(2, false)}, []byte{1, 2}},
		"cached zeroes":     {[]backstore.Op{write(1, true), zeroes}, []byte{1, 0}},
		"discarded, stable": {[]backstore.Op{write(1, true), {Kind: backstore.Discard, FUA: true, Len: memstore.Sector}}, []byte{0}},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := open(t)
			for _, op := range test.ops {
				c.Must(t, op)
			}
			found := outcomes(s)
			for _, b := range test.want {
				if !found[b] {
					t.Errorf("no crash left %d", b)
				}
				delete(found, b)
			}
			if len(found) > 0 {
				t.Errorf("crashes left %v as well", found)
			}
		})
	}
}

// TestCrashKeepsWhatWasPromised compares every sector after a crash with what
// was stable and what came after it.
func TestCrashKeepsWhatWasPromised(t *testing.T) {
	_, c := open(t)
	rapid.Check(t, func(rt *rapid.T) {
		s, err := memstore.New(memstore.Config{Size: size})
		if err != nil {
			rt.Fatal(err)
		}
		lane, _ := s.Lane(c.Loop)
		var allowed [size / memstore.Sector]map[byte]bool
		for i := range allowed {
			allowed[i] = map[byte]bool{0: true}
		}
		for n := byte(1); n < 40; n++ {
			op := write(n, rapid.Bool().Draw(rt, "fua"))
			sector := rapid.Int64Range(0, 3).Draw(rt, "sector")
			op.Off = sector * memstore.Sector
			if op.FUA {
				clear(allowed[sector])
			}
			allowed[sector][n] = true
			if lane.Submit(&op); op.Err != nil {
				rt.Fatal(op.Err)
			}
		}
		after := s.CrashClone(rapid.Uint64().Draw(rt, "seed")).Bytes()
		for i := range allowed {
			if got := after[i*memstore.Sector]; !allowed[i][got] {
				rt.Fatalf("sector %d holds %d after the crash, expected one of %v", i, got, allowed[i])
			}
		}
	})
}

func TestCrashCloneIsSeparate(t *testing.T) {
	s, c := open(t)
	c.Must(t, write(1, true))
	clone := s.CrashClone(1)
	c.Must(t, write(2, true))
	if got := clone.Bytes()[0]; got != 1 {
		t.Errorf("the clone changed to %d", got)
	}
	if s.Unstable() != 0 || !bytes.Equal(s.CrashClone(1).Bytes(), s.Bytes()) {
		t.Error("a crash changed what is stable")
	}
}

// TestCrashLosesARelease: a sector that still has data after a crash is provisioned.
func TestCrashLosesARelease(t *testing.T) {
	s, c := open(t)
	c.Must(t, write(1, true))
	c.Must(t, backstore.Op{Kind: backstore.Discard, Len: memstore.Sector})
	for seed := range uint64(20) {
		clone := s.CrashClone(seed)
		k := backstoretest.NewClient(t, clone, c.Loop)
		op := backstore.Op{Kind: backstore.Map, Len: memstore.Sector}
		if err := k.Run(&op); err != nil {
			t.Fatal(err)
		}
		if data := clone.Bytes()[0] != 0; data != op.Mapped {
			t.Errorf("seed %d: has data %t, mapped %t", seed, data, op.Mapped)
		}
	}
}
