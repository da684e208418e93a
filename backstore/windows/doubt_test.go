package windows

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
)

// TestMapInDoubt: a map that was written although the write has failed says nothing that
// the mirror does not go by.
func TestMapInDoubt(t *testing.T) {
	for name, change := range map[string]func(*Mirror){
		"who leads":       func(m *Mirror) { _ = m.exchange() },
		"what may differ": func(m *Mirror) { _ = m.quieten() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, page := mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)
			chart := errstore.Wrap(page)
			c := mirrorOf(a, b, chart)
			c.Window = time.Hour
			m := openWhole(t, c)
			k := backstoretest.NewClient(t, m, backstoretest.NewLoop(t, false))
			k.Write(t, 0, backstoretest.Pattern(4096, 1))
			chart.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Times: 1, Err: errBroken, Done: slotSize})
			change(m)
			newest := backstoretest.Pattern(4096, 2)
			k.Must(t, backstore.Op{Kind: backstore.Write, FUA: true, Data: newest})

			var left []*memstore.Store
			for _, s := range []*memstore.Store{a, b, page} {
				left = append(left, s.CrashClone(1))
			}
			again := openMirror(t, mirrorOf(left[0], left[1], left[2]))
			defer func() {
				if err := again.Close(); err != nil {
					t.Error(err)
				}
			}()
			whole(t, again)
			t.Run("read", func(t *testing.T) {
				if !bytes.Equal(bytesOf(t, again)[:4096], newest) {
					t.Error("what was acknowledged is gone")
				}
			})
			if !bytes.Equal(left[0].Bytes(), left[1].Bytes()) {
				t.Error("the members differ")
			}
		})
	}
}
