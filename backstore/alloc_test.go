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

// roundTrip is an op that goes from this goroutine through the loop and back
// without memory of its own.
type roundTrip struct {
	client *backstoretest.Client
	op     backstore.Op
	done   chan struct{}
}

func newRoundTrip(c *backstoretest.Client, kind backstore.Kind) *roundTrip {
	r := &roundTrip{client: c, done: make(chan struct{}, 1)}
	r.op = backstore.Op{Kind: kind, Len: page, Data: backstoretest.Buffer(page)}
	r.op.Done = func(*backstore.Op) { r.done <- struct{}{} }
	return r
}

// Run implements evloop.Task.
func (r *roundTrip) Run() {
	if r.client.Lane.TryNow(&r.op) || r.client.Lane.Submit(&r.op) {
		r.done <- struct{}{}
	}
}

func (r *roundTrip) do() {
	r.client.Loop.Post(r)
	<-r.done
}

// TestNoAllocations covers inline, ring and worker round trips.
func TestNoAllocations(t *testing.T) {
	for mode, ring := range modes {
		for name, s := range stores(t) {
			c := client(t, s, ring)
			for kind := backstore.Read; kind <= backstore.Map; kind++ {
				r := newRoundTrip(c, kind)
				r.do()
				if n := testing.AllocsPerRun(20, r.do); n != 0 || r.op.Err != nil {
					t.Errorf("%s, %s, %v: %v allocations, error %v", mode, name, kind, n, r.op.Err)
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
				r := newRoundTrip(c, kind)
				b.SetBytes(page)
				b.ReportAllocs()
				for b.Loop() {
					r.do()
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
