package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// version is of all messages. Nodes of other versions are not understood, as if they were
// silent.
const version = 2

// Kind says what a message is.
type Kind byte

// The kinds.
const (
	IsAsk Kind = 1 + iota
	IsReport
	IsGrant
	IsSuperseded // an Ask whose Term is that of a later controller: who has asked is none any more
	IsShow       // a question for the controller's Status
	IsList       // a question for a node's flows
	IsTotals     // what a controller tells whoever looks
)

// KindOf returns the kind of a message.
func KindOf(message []byte) (Kind, error) {
	if len(message) < 2 || message[0] != version {
		return 0, fmt.Errorf("found %x, expected a message of version %d", message[:min(len(message), 8)], version)
	}
	return Kind(message[1]), nil
}

var errCut = errors.New("found a message that ends too early, or with too much behind it")

// wire writes a message or reads one: the same function says what it looks like. Numbers are
// varints.
type wire struct {
	bytes   []byte // written, or to be read
	at      int    // what was read of them
	reading bool
	err     error
}

// encode writes a message of a kind behind to.
func encode(to []byte, k Kind, message func(*wire)) []byte {
	w := wire{bytes: append(to, version, byte(k))}
	message(&w)
	return w.bytes
}

// decode reads a message whose kind is known.
func decode(from []byte, message func(*wire)) error {
	w := wire{bytes: from, at: 2, reading: true}
	if message(&w); w.err == nil && w.left() > 0 {
		w.err = errCut
	}
	return w.err
}

func (w *wire) left() int { return len(w.bytes) - w.at }

// cut ends reading.
func (w *wire) cut() { w.err, w.at = errCut, len(w.bytes) }

// byte is eight flags.
func (w *wire) byte(v *byte) {
	switch {
	case !w.reading:
		w.bytes = append(w.bytes, *v)
	case w.left() == 0:
		w.cut()
		*v = 0
	default:
		*v = w.bytes[w.at]
		w.at++
	}
}

func (w *wire) uint(v *uint64) {
	if w.reading && w.at < len(w.bytes) && w.bytes[w.at] < 0x80 { // as most are
		*v = uint64(w.bytes[w.at])
		w.at++
		return
	}
	w.long(v)
}

func (w *wire) long(v *uint64) {
	if !w.reading {
		w.bytes = binary.AppendUvarint(w.bytes, *v)
		return
	}
	n := 0
	if *v, n = binary.Uvarint(w.bytes[w.at:]); n <= 0 {
		w.cut()
		*v = 0
		return
	}
	w.at += n
}

// int is for what is seldom negative.
func (w *wire) int(v *int64) {
	u := uint64(*v)
	w.uint(&u)
	*v = int64(u)
}

// signed is for what is small, of either sign.
func (w *wire) signed(v *int64) {
	u := uint64(*v)<<1 ^ uint64(*v>>63)
	w.uint(&u)
	*v = int64(u>>1) ^ -int64(u&1)
}

func (w *wire) text(v *string) {
	n := uint64(len(*v))
	w.uint(&n)
	if !w.reading {
		w.bytes = append(w.bytes, *v...)
		return
	}
	if n > uint64(w.left()) {
		w.cut()
		n = 0
	}
	*v = string(w.bytes[w.at:][:n])
	w.at += int(n)
}

// flags are up to eight of them.
func (w *wire) flags(all ...*bool) {
	b := byte(0)
	for i, v := range all {
		if *v {
			b |= 1 << i
		}
	}
	w.byte(&b)
	for i, v := range all {
		*v = b&(1<<i) != 0
	}
}

// list is a number of things, of which each takes at least so many bytes. What is read uses the
// memory that is there, and one has to set all of it.
func list[T any](w *wire, all *[]T, least int, one func(*T)) {
	n := uint64(len(*all))
	w.uint(&n)
	if w.reading {
		if n > uint64(w.left()/least) {
			w.cut()
			n = 0
		}
		*all = slices.Grow((*all)[:0], int(n))[:n]
	}
	for i := range *all {
		one(&(*all)[i])
	}
}
