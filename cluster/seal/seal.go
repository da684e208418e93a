// Package seal is the header of an encrypted volume in the cluster's state: its master key,
// wrapped by a key that the state does not have. The volume's owner changes it by a ledger of
// package heritage. Here is what is stored, and what an administrator does with it while no
// node serves the volume.
package seal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lunar/cluster"
	"lunar/cluster/heritage"
	"lunar/cluster/ownership"
	"lunar/internal/durable"
)

// Seal is a header with what it belongs to.
type Seal struct {
	Image  string `json:"image,omitempty"` // of Ceph, as the configuration names it; empty: that which says so itself
	Header []byte `json:"header"`          // as package crypt has it
}

// Encode is the value in a ledger.
func (s Seal) Encode() json.RawMessage {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return text
}

// Parse reads what Encode writes; nil is the zero Seal: there is none.
func Parse(value json.RawMessage) (s Seal, err error) {
	if value == nil {
		return s, nil
	}
	if err = durable.Strict(value, &s); err == nil && len(s.Header) == 0 {
		err = errors.New("found no header in it")
	}
	return s, err
}

// Stored reads the value of a volume's key (cluster.Keys.Header); nil: there is none.
func Stored(stored []byte) (Seal, error) {
	if stored == nil {
		return Seal{}, nil
	}
	value, err := heritage.Value(stored)
	if err != nil {
		return Seal{}, err
	}
	return Parse(value)
}

// ErrNone says that the state has no header of a volume.
var ErrNone = errors.New("the cluster's state has no header of the volume")

// ErrThere says that it has one.
var ErrThere = errors.New("the cluster's state has a header of the volume, without which its data are lost")

// Of is the header of a volume in a state.
type Of struct {
	State  cluster.State
	Keys   cluster.Keys
	Volume string
}

// sight is what the state has of the volume at a moment.
type sight struct {
	Seal
	header, owner cluster.Condition // that both are as they were
	served        string            // by which living node the volume is, or is about to be; empty: by none
}

func (o Of) look(ctx context.Context) (now sight, err error) {
	items, _, err := o.State.Get(ctx, o.Keys.All())
	if err != nil {
		return now, err
	}
	now.header.Key, now.owner.Key = o.Keys.Header(o.Volume), o.Keys.Owner(o.Volume)
	var owner ownership.Record
	living := map[string]string{}
	for _, i := range items {
		node, is := o.Keys.NodeOf(i.Key)
		switch {
		case is:
			var n ownership.Node
			n, err = ownership.ParseNode(i.Value)
			living[node] = n.Incarnation
		case i.Key == now.header.Key:
			now.header.Modified = i.Modified
			now.Seal, err = Stored(i.Value)
		case i.Key == now.owner.Key:
			now.owner.Modified = i.Modified
			owner, err = ownership.Parse(i.Value)
		}
		if err != nil {
			return now, fmt.Errorf("%s: %w", i.Key, err)
		}
	}
	if owner.Standing != ownership.Free && owner.Incarnation != "" && living[owner.Node] == owner.Incarnation {
		now.served = owner.Node
	}
	return now, nil
}

// restore stores a header where there is none. Whoever serves the volume next goes by it.
func (o Of) restore(ctx context.Context, s Seal) error {
	now, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case now.Header != nil:
		return ErrThere
	}
	stored, err := heritage.Wrap(s.Encode())
	if err != nil {
		return err
	}
	_, err = o.State.Commit(ctx, []cluster.Condition{now.header}, []cluster.Change{{Key: now.header.Key, Value: stored}})
	return err
}

// Remove removes the header. It refuses while a node that lives has the volume, or is about to.
func (o Of) Remove(ctx context.Context) error {
	now, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case now.Header == nil:
		return ErrNone
	case now.served != "":
		return fmt.Errorf("found that node %s has the volume or claims it, expected none: take it out of the configuration, or stop the servers of its owners, first", now.served)
	}
	_, err = o.State.Commit(ctx, []cluster.Condition{now.header, now.owner}, []cluster.Change{{Key: now.header.Key, Delete: true}})
	return err
}
