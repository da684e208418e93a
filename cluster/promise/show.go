package promise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lunar/cluster/link"
	"lunar/scheduler/nodes"
)

// Status is the promise over all nodes as its controller knows it.
type Status struct {
	Controller string `json:"controller"` // the node
	nodes.Status
}

// Seen is what was heard of the controller last.
type Seen struct {
	Controller string // the node
	nodes.Totals
	At time.Time
}

// heeded is for how long a controller is heard by what it has said last: it says something once
// in each second.
const heeded = 3 * time.Second

// Seen is what was heard of the controller lately; nil: of none.
func (k *Keeper) Seen() *Seen {
	s := k.seen.Load()
	if s == nil || time.Since(s.At) > heeded {
		return nil
	}
	return s
}

// statusSize is how many bytes of a status come over a link.
const statusSize = 4 << 20

// Status asks the controller, which may be any node, for its status.
func (k *Keeper) Status(ctx context.Context) (s Status, err error) {
	var text []byte
	if !k.do(ctx, func() { text = k.shown() }) {
		return s, errors.Join(errNobody, ctx.Err())
	}
	if len(text) == 0 {
		if text, err = k.askFor(ctx); err != nil {
			return s, err
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, fmt.Errorf("the controller's status: %w", err)
	}
	return s, nil
}

// shown is the status; nil: another node is the controller, or none.
func (k *Keeper) shown() []byte {
	if k.controller == nil {
		return nil
	}
	text, err := json.Marshal(Status{k.config.Node, k.controller.Status()})
	if err != nil || len(text) > statusSize {
		return nil
	}
	return text
}

// askFor asks the node that the state says.
func (k *Keeper) askFor(ctx context.Context) ([]byte, error) {
	items, _, err := k.config.State.Get(ctx, k.config.Keys.Controller())
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, errNobody
	}
	var r record
	if err := json.Unmarshal(items[0].Value, &r); err != nil || r.Version != 1 {
		return nil, fmt.Errorf("who the controller is: found %q, expected version 1 and a node (%w)", items[0].Value, err)
	}
	answer, err := k.config.Links.Call(ctx, r.Node, link.Message{Kind: link.Report, Room: statusSize, Body: [][]byte{nodes.Show()}})
	if err == nil && len(answer) == 0 {
		err = errNobody
	}
	return answer, err
}
