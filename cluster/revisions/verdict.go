package revisions

import (
	"encoding/json"
	"fmt"

	"lunar/internal/packed"
)

// verdict is the form of what a node says to a proposal: one of Body, Packed and Long.
type verdict struct {
	ID     string          `json:"id"` // of the document
	Body   json.RawMessage `json:"body,omitempty"`
	Packed []byte          `json:"packed,omitempty"` // what is long
	Long   int             `json:"long,omitempty"`   // bytes of what the state does not take
}

const (
	longVerdict = 64 << 10 // bytes from which one is packed
	mostVerdict = 16 << 20 // bytes of one that was packed
	mostPacked  = 1 << 20  // etcd takes 1.5 MiB at once
)

// verdictOf is what is stored.
func verdictOf(id string, body json.RawMessage) []byte {
	v := verdict{ID: id, Body: body}
	if len(body) > longVerdict {
		v.Body, v.Packed = nil, packed.Of(body)
	}
	if len(body) > mostVerdict || len(v.Packed) > mostPacked {
		v.Packed, v.Long = nil, len(body)
	}
	value, err := json.Marshal(&v)
	if err != nil {
		panic(err) // of a Judge that makes no JSON
	}
	return value
}

// said is what a node says to the proposal; nil: nothing, or to another one.
func (p *Proposal) said(value []byte) (json.RawMessage, error) {
	var v verdict
	switch {
	case json.Unmarshal(value, &v) != nil || v.ID != p.ID:
		return nil, nil
	case v.Long > 0:
		return nil, fmt.Errorf("what it would change: %w: found %d bytes, make the change in smaller parts", ErrTooLong, v.Long)
	case v.Packed != nil:
		return packed.Text(v.Packed, mostVerdict)
	}
	return v.Body, nil
}
