package tier

import (
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// subjects pair every policy, size, admission, number of nodes and kind of store
// with some of the others.
var subjects = map[string]struct {
	setup setup
	open  func(testing.TB) backstore.Store
	ring  bool
}{
	"through, tiny, ram":                 {tiny.with(Through, "lru"), newRAM, false},
	"through, large, async, 2 nodes":     {large.on(2).with(Through, "lru"), asyncMem, false},
	"through, tiny, async, fussy":        {tiny.on(2).with(Through, fussy), asyncMem, false},
	"through, large, file":               {large.with(Through, fussy), file, true},
	"back, tiny, async":                  {tiny.with(Back, "lru"), asyncMem, false},
	"back, large, async, 4 nodes":        {large.on(4).with(Back, "lru"), asyncMem, false},
	"back, tiny, ram, fussy, 4 nodes":    {tiny.on(4).with(Back, fussy), newRAM, false},
	"back, large, direct file, 2 nodes":  {large.on(2).with(Back, "lru"), directFile, true},
	"back, tiny, direct file":            {tiny.with(Back, "lru"), directFile, true},
	"back, large, file, workers":         {large.with(Back, "lru"), file, false},
	"through, large, memory, 4 nodes":    {large.on(4).with(Through, fussy), inlineMem, false},
	"through, tiny, direct file, a scan": {tiny.with(Through, fussy), directFile, true},
}

func asyncMem(t testing.TB) backstore.Store   { return newMem(t, true) }
func inlineMem(t testing.TB) backstore.Store  { return newMem(t, false) }
func file(t testing.TB) backstore.Store       { return newFile(t, false) }
func directFile(t testing.TB) backstore.Store { return newFile(t, true) }

func TestConformance(t *testing.T) {
	for name, s := range subjects {
		t.Run(name, func(t *testing.T) {
			s.setup.volume.ReadAhead = 64 << 10
			backstoretest.Run(t, backstoretest.Subject{Ring: s.ring, Open: func(t *testing.T) backstore.Store {
				w, _ := s.setup.wrap(t, s.open(t))
				return w
			}})
		})
	}
}
