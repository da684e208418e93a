package relay

import (
	"bytes"
	"reflect"
	"testing"

	"lunar/target/scsi/sense"
)

// message is what all messages have.
type message interface {
	Append([]byte) []byte
	Parse([]byte) error
}

// examples are one of each type, with the data that follow it.
var examples = []struct {
	message
	data []byte
}{
	{&Begin{1, true, true, 7, 1 << 48, "db", "iqn.x,i,0x800000000001", "iqn.t", "192.0.2.1", "group", "user"}, nil},
	{&End{2}, nil},
	{&Execute{3, 4, 2, true, false, true, 512, 9, []byte{0x2a, 1, 2, 3, 4, 5, 6, 7, 8, 9}, []byte("data")}, []byte("data")},
	{&Abort{5, 6}, nil},
	{&Manage{7, 5}, nil},
	{&Want{"db", 8, 1 << 18, 1 << 18}, nil},
	{&Part{"db", 9, 1 << 18, []byte("more")}, []byte("more")},
	{&Answer{Done, 2, true, true, 512, 9, 10, &sense.Data{Key: sense.MediumError, ASC: 0x1100, Deferred: true, InfoValid: true, Info: 1 << 40, FieldValid: true, FieldInCDB: true, Field: 3, BitValid: true, Bit: 4, Progress: 5, ProgressValid: true}, []byte("in")}, []byte("in")},
	{&Answer{Outcome: NotHere, Data: []byte{}}, nil},
}

func fresh(m message) message { return reflect.New(reflect.TypeOf(m).Elem()).Interface().(message) }

// TestMessages: what was written is read; what is cut short is refused.
func TestMessages(t *testing.T) {
	for _, e := range examples {
		written := append(e.Append(nil), e.data...)
		if len(written)-len(e.data) > MaxHeader {
			t.Errorf("%T: %d bytes before the data", e.message, len(written)-len(e.data))
		}
		got := fresh(e.message)
		if err := got.Parse(written); err != nil || !reflect.DeepEqual(got, e.message) {
			t.Errorf("found %+v, %v, expected %+v", got, err, e.message)
		}
		for n := range len(written) - len(e.data) {
			if got.Parse(written[:n]) == nil {
				t.Errorf("%T: the first %d of %d bytes were read", e.message, n, len(written))
			}
		}
		written[0]++
		if got.Parse(written) == nil {
			t.Errorf("%T of another version was read", e.message)
		}
	}
}

// FuzzMessages: whatever comes is refused, or is what writing it anew gives.
func FuzzMessages(f *testing.F) {
	for _, e := range examples {
		f.Add(append(e.Append(nil), e.data...))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, e := range examples {
			m := fresh(e.message)
			if m.Parse(b) != nil {
				continue
			}
			again := m.Append(nil)
			switch m := m.(type) {
			case *Execute:
				again = append(again, m.Data...)
			case *Part:
				again = append(again, m.Data...)
			case *Answer:
				again = append(again, m.Data...)
			}
			if !bytes.Equal(again, b) {
				t.Errorf("%T: found % x, expected % x", m, again, b)
			}
		}
	})
}
