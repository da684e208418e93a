package tier

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// versions writes numbers to sectors and knows which a power cut must not undo.
type versions struct {
	t       *testing.T
	subject subject
	random  *rand.Rand
	next    uint64
	written [span / sector]uint64
	durable [span / sector]uint64
}

// write gives some sectors a new version.
func (v *versions) write(fua bool) {
	first := v.random.IntN(span / sector)
	n := 1 + v.random.IntN(min(span/sector-first, 40))
	data := backstoretest.Buffer(n * sector)
	v.next++
	for i := range n {
		binary.LittleEndian.PutUint64(data[i*sector:], v.next)
		v.written[first+i] = v.next
		if fua {
			v.durable[first+i] = v.next
		}
	}
	v.subject.client.Must(v.t, backstore.Op{Kind: backstore.Write, FUA: fua, Off: int64(first) * sector, Data: data})
}

func (v *versions) flush() {
	v.subject.client.Must(v.t, backstore.Op{Kind: backstore.Flush})
	v.durable = v.written
}

// cut takes the power away and looks at what is left.
func (v *versions) cut() {
	left := v.subject.lower.CrashClone(v.random.Uint64()).Bytes()
	for i, least := range v.durable {
		if got := binary.LittleEndian.Uint64(left[i*sector:]); got < least {
			v.t.Fatalf("sector %d: version %d survived, %d was promised to", i, got, least)
		}
	}
}

// What was flushed or written with FUA survives a power cut, whatever the flusher
// does meanwhile.
func TestPowerCut(t *testing.T) {
	for name, s := range variants {
		t.Run(name, func(t *testing.T) {
			s.volume.Age = 100 * time.Microsecond
			v := versions{t: t, subject: newSubject(t, name, s, true), random: rand.New(rand.NewPCG(1, 2))}
			for range 200 {
				switch v.random.IntN(8) {
				case 0:
					v.flush()
				case 1, 2:
					v.write(true)
				default:
					v.write(s.volume.Policy == Sync)
				}
				v.cut()
			}
		})
	}
}

// Without a promise a power cut does undo writes: the test above can fail.
func TestPowerCutUndoes(t *testing.T) {
	s := newSubject(t, "back", large.with(Back, "lru"), false)
	s.client.Write(t, 0, backstoretest.Pattern(page, 1))
	if s.lower.CrashClone(1).Bytes()[0] != 0 {
		t.Fatal("a write back reached stable media without a flush")
	}
}
