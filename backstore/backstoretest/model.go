package backstoretest

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"lunar/backstore"
)

// modelSize is how much of the store testModel works on, in bytes: little, so
// that the ops meet.
const modelSize = 128 << 10

// testModel does the same to the store and to a slice of bytes.
func testModel(t *testing.T, s Subject) {
	store, c := s.open(t)
	info := store.Info()
	rapid.Check(t, func(rt *rapid.T) {
		model := make([]byte, modelSize)
		c.Must(rt, backstore.Op{Kind: backstore.WriteZeroes, Len: modelSize})
		for range rapid.IntRange(1, 20).Draw(rt, "ops") {
			off, n := drawRange(rt)
			switch kind := drawKind(rt, info); kind {
			case backstore.Read:
				s.expect(rt, c, off, model[off:off+n])
			case backstore.Write:
				data := Pattern(int(n), rapid.Uint64().Draw(rt, "data"))
				c.Must(rt, backstore.Op{Kind: kind, FUA: drawFUA(rt), Off: off, Data: data})
				copy(model[off:], s.kept(data))
			case backstore.Flush:
				c.Must(rt, backstore.Op{Kind: kind})
			case backstore.Map:
				checkMap(rt, c, model, off, n)
			default:
				c.Must(rt, backstore.Op{Kind: kind, FUA: drawFUA(rt), Off: off, Len: n})
				clear(model[off : off+n])
			}
		}
		s.expect(rt, c, 0, model)
	})
}

// drawRange returns a range of whole sectors.
func drawRange(t *rapid.T) (off, n int64) {
	first := rapid.Int64Range(0, modelSize/sector-1).Draw(t, "first")
	count := rapid.Int64Range(1, min(modelSize/sector-first, 256)).Draw(t, "count")
	return first * sector, count * sector
}

// drawFUA is rare, for it waits for the device.
func drawFUA(t *rapid.T) bool { return rapid.IntRange(0, 7).Draw(t, "fua") == 7 }

// drawKind leaves discards out where what they leave is not defined.
func drawKind(t *rapid.T, info backstore.Info) backstore.Kind {
	kinds := []backstore.Kind{backstore.Read, backstore.Write, backstore.Flush, backstore.WriteZeroes, backstore.Map}
	if info.Discard && info.DiscardZeroes {
		kinds = append(kinds, backstore.Discard)
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")
}

// checkMap expects zeroes wherever the store says that nothing is provisioned.
func checkMap(t Fataler, c *Client, model []byte, off, n int64) {
	t.Helper()
	mapped, length := c.mapAt(t, off, n)
	if mapped {
		return
	}
	if !bytes.Equal(model[off:off+length], make([]byte, length)) {
		t.Fatalf("an extent of %d bytes at %d is not mapped, yet it holds data", length, off)
	}
}
