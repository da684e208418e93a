package backstore_test

import (
	"path/filepath"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// stores are what the data path is measured on.
func stores(t testing.TB) map[string]backstore.Store {
	t.Helper()
	file := func(dir string, direct bool) backstore.Store {
		return must[backstore.Store](t)(backstore.OpenFile(backstore.FileConfig{
			Path: filepath.Join(dir, "v"), Size: size, Direct: direct, BlockSize: page,
		}))
	}
	return map[string]backstore.Store{
		"file in memory": file(memoryDir(t), false),
		"file on disk":   file(diskDir(t), false),
		"direct file":    file(diskDir(t), true),
		"ram":            must[backstore.Store](t)(backstore.NewRAM(size, page)),
		"null":           must[backstore.Store](t)(backstore.NewNull(size, page)),
	}
}

// TestNoAllocations covers inline, ring and worker round trips.
func TestNoAllocations(t *testing.T) {
	for mode, ring := range modes {
		for name, s := range stores(t) {
			c := client(t, s, ring)
			for kind := backstore.Read; kind <= backstore.Map; kind++ {
				r := backstoretest.NewRoundTrip(c, kind, page)
				r.Do()
				if n := testing.AllocsPerRun(20, r.Do); n != 0 || r.Op.Err != nil {
					t.Errorf("%s, %s, %v: %v allocations, error %v", mode, name, kind, n, r.Op.Err)
				}
			}
		}
	}
}

// BenchmarkRoundTrip is one 4 KiB op at a time, the way through the loop's inbox
// and back included.
func BenchmarkRoundTrip(b *testing.B) {
	for name, s := range stores(b) {
		c := client(b, s, true)
		for _, kind := range []backstore.Kind{backstore.Read, backstore.Write} {
			b.Run(name+"/"+kind.String(), func(b *testing.B) {
				r := backstoretest.NewRoundTrip(c, kind, page)
				b.SetBytes(page)
				b.ReportAllocs()
				for b.Loop() {
					r.Do()
				}
			})
		}
	}
}

// BenchmarkTryNow is a 4 KiB read on the loop's thread itself, which is what a
// command costs that need not wait.
func BenchmarkTryNow(b *testing.B) {
	for name, s := range stores(b) {
		if name == "direct file" {
			continue // never inline
		}
		c := client(b, s, true)
		c.Write(b, 0, backstoretest.Pattern(page, 1))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(page)
			b.ReportAllocs()
			op := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
			backstoretest.On(c.Loop, func() {
				for b.Loop() {
					if !c.Lane.TryNow(&op) || op.Err != nil {
						b.Errorf("not read inline, error %v", op.Err)
					}
				}
			})
		})
	}
}
