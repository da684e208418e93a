package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// MaxBody is how many bytes a message and an answer may have.
const MaxBody = 16<<20 + 64<<10

// MaxBeat is how many bytes a beat may have.
const MaxBeat = 64 << 10

// sort is what a frame is.
type sort uint8

const (
	greeting sort = 1 + iota // the first one of each side: a hello
	beat                     // of a connection of beats: body is what Config.Says returns, and it is answered by one of the same number
	request
	oneWay
	answer
	refusal // instead of an answer: the request was not handled. Body: why
	sorts
)

// limits are how many bytes the bodies of each sort have at most.
var limits = [sorts]uint32{greeting: 4 << 10, beat: MaxBeat, request: MaxBody, oneWay: MaxBody, answer: MaxBody, refusal: 4 << 10}

// headerSize is how many bytes precede each body:
//
//	0  bytes of the body (4)   4  sort (1)   5  kind (1)   6  0 (2)
//	8  number (8)             16  room for the answer (4)
//
// all in network order.
const headerSize = 20

// header is what precedes a body.
type header struct {
	sort   sort
	kind   uint8
	number uint64 // of a request and its answer
	length uint32
	room   uint32
}

func (h *header) put(to *[headerSize]byte) {
	binary.BigEndian.PutUint32(to[0:], h.length)
	to[4], to[5], to[6], to[7] = byte(h.sort), byte(h.kind), 0, 0
	binary.BigEndian.PutUint64(to[8:], h.number)
	binary.BigEndian.PutUint32(to[16:], h.room)
}

// parse reads what put writes. It refuses what no node sends.
func parse(from *[headerSize]byte) (header, error) {
	h := header{
		length: binary.BigEndian.Uint32(from[0:]), sort: sort(from[4]), kind: from[5],
		number: binary.BigEndian.Uint64(from[8:]), room: binary.BigEndian.Uint32(from[16:]),
	}
	switch {
	case h.sort == 0 || h.sort >= sorts || from[6] != 0 || from[7] != 0:
		return h, fmt.Errorf("found a frame of sort %d, expected 1 to %d: it is another protocol", h.sort, sorts-1)
	case h.length > limits[h.sort] || h.room > MaxBody:
		return h, fmt.Errorf("found %d bytes and room for %d in a frame of sort %d, expected %d at most", h.length, h.room, h.sort, limits[h.sort])
	}
	return h, nil
}

// readHeader reads the next one. io.EOF: there is none.
func readHeader(r io.Reader) (header, error) {
	var b [headerSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return header{}, err
	}
	return parse(&b)
}

// Protocol is the version of what goes over connections. Nodes of different versions do not
// connect.
const Protocol = 2

// Hello is what both sides say first.
type Hello struct {
	Protocol    int    `json:"protocol"`
	Cluster     string `json:"cluster"`
	Node        string `json:"node"`
	Incarnation string `json:"incarnation"`
	Way         int    `json:"way"`               // which of the connections of who has made it
	Refused     string `json:"refused,omitempty"` // why the connection is not taken
}

// Ways is how many connections a node may have to another one.
const Ways = 34

// Judge refuses another protocol, cluster or node than expected.
func (h *Hello) Judge(cluster, node string) error {
	switch {
	case h.Refused != "":
		return fmt.Errorf("it refuses this node: %s", h.Refused)
	case h.Protocol != Protocol:
		return fmt.Errorf("found protocol %d, expected %d: nodes of these versions cannot be linked", h.Protocol, Protocol)
	case h.Cluster != cluster:
		return fmt.Errorf("found a node of cluster %q, expected %q", h.Cluster, cluster)
	case h.Node != node:
		return fmt.Errorf("found node %q, expected %q, as its certificate says", h.Node, node)
	case h.Incarnation == "" || h.Way < 0 || h.Way >= Ways:
		return fmt.Errorf("found incarnation %q and way %d, expected one of each", h.Incarnation, h.Way)
	}
	return nil
}

// Write says it.
func (h Hello) Write(w io.Writer) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	var b [headerSize]byte
	(&header{sort: greeting, length: uint32(len(text))}).put(&b)
	_, err = w.Write(append(b[:], text...))
	return err
}

// ReadHello hears what the other side says.
func ReadHello(r io.Reader) (h Hello, err error) {
	f, err := readHeader(r)
	if err == nil && f.sort != greeting {
		err = fmt.Errorf("found a frame of sort %d, expected a greeting", f.sort)
	}
	if err != nil {
		return h, err
	}
	text := make([]byte, f.length)
	if _, err = io.ReadFull(r, text); err == nil {
		err = json.Unmarshal(text, &h)
	}
	return h, err
}
