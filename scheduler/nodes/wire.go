package nodes

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// version is of all messages. Nodes of other versions are not understood, as if they were
// silent.
const version = 1

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
	w := wire{bytes: from[2:], reading: true}
	if message(&w); w.err == nil && len(w.bytes) > 0 {
		w.err = errCut
	}
	return w.err
}

func (w *wire) uint(v *uint64) {
	if !w.reading {
		w.bytes = binary.AppendUvarint(w.bytes, *v)
		return
	}
	n := 0
	if *v, n = binary.Uvarint(w.bytes); n <= 0 {
		w.err, w.bytes, *v = errCut, nil, 0
		return
	}
	w.bytes = w.bytes[n:]
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
	if n > uint64(len(w.bytes)) {
		w.err, w.bytes, n = errCut, nil, 0
	}
	*v, w.bytes = string(w.bytes[:n]), w.bytes[n:]
}

// flags are up to eight of them.
func (w *wire) flags(all ...*bool) {
	b := byte(0)
	if !w.reading {
		for i, v := range all {
			if *v {
				b |= 1 << i
			}
		}
		w.bytes = append(w.bytes, b)
		return
	}
	if len(w.bytes) == 0 {
		w.err = errCut
		return
	}
	b, w.bytes = w.bytes[0], w.bytes[1:]
	for i, v := range all {
		*v = b&(1<<i) != 0
	}
}

// list is a number of things, of which each takes at least so many bytes.
func list[T any](w *wire, all *[]T, least int, one func(*T)) {
	n := uint64(len(*all))
	w.uint(&n)
	if w.reading {
		if n > uint64(len(w.bytes)/least) {
			w.err, w.bytes, n = errCut, nil, 0
		}
		if *all = (*all)[:0]; n > 0 {
			*all = append(*all, make([]T, n)...)
		}
	}
	for i := range *all {
		one(&(*all)[i])
	}
}
