package heritage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"lunar/cluster"
	"lunar/cluster/ownership"
)

// Errors of a Ledger, beside those of cluster.State. ErrNoQuorum and ErrFull say here, too,
// that nothing has changed.
var (
	// ErrSuperseded: the claim does not stand any more. The next owner has what was
	// stored last, which may be what was to be stored.
	ErrSuperseded = errors.New("the volume has another owner")
	// ErrTooLarge: the value has more than MaxSize bytes. Nothing has changed.
	ErrTooLarge = errors.New("there is no room for so much in the cluster's state")
)

// MaxSize bounds a value in bytes, as it is stored. etcd takes requests of up to 1.5 MiB.
const MaxSize = 1 << 20

// retry is the pause after an attempt that has settled nothing.
const retry = 20 * time.Millisecond

// Claim says who reads and changes the value.
type Claim struct {
	State  cluster.State
	Keys   cluster.Keys
	Volume string
	Node   string
	Epoch  uint64 // of the node's claim, as in the owner's record
	Value  string // its key, one of the volume's
}

// Ledger is an owner's access to the value. Its methods are called one at a time.
type Ledger struct {
	claim Claim
	last  uint64 // number of the last change that was tried: none has that of another, of another Ledger neither
}

// envelope is the value as it is stored. Epoch and Change tell what it is apart from
// everything else that was ever stored.
type envelope struct {
	Version int             `json:"version"`
	Epoch   uint64          `json:"epoch"`
	Change  uint64          `json:"change"`
	Value   json.RawMessage `json:"value"`
}

const version = 1

// Open returns what the earlier owners have left; nil: nothing. It asks until the state
// answers or ctx ends, and fails with ErrSuperseded.
func Open(ctx context.Context, claim Claim) (*Ledger, json.RawMessage, error) {
	l := &Ledger{claim: claim, last: rand.Uint64N(1 << 52)} // a claim may have several, one after the other
	for {
		now, err := l.look(ctx)
		if err == nil {
			return l, now.envelope.Value, nil
		}
		if !errors.Is(err, cluster.ErrNoQuorum) || !pause(ctx) {
			return nil, nil, err
		}
	}
}

// Bequeath stores what the first owner of a volume is to find, that nobody owned yet. It fails with
// ErrSuperseded if somebody does, or something else was stored that is not of Bequeath; other errors
// are those of cluster.State.
func Bequeath(ctx context.Context, state cluster.State, keys cluster.Keys, volume string, value json.RawMessage) error {
	items, _, err := state.Get(ctx, keys.Volume(volume))
	if err != nil {
		return err
	}
	var before cluster.Revision
	for _, i := range items {
		e, err := parse(i.Value)
		if i.Key == keys.Owner(volume) || i.Key == keys.Heritage(volume) && (err != nil || e.Epoch != 0) {
			return fmt.Errorf("volume %s: found the key %s: %w", volume, i.Key, ErrSuperseded)
		}
		if i.Key == keys.Heritage(volume) {
			before = i.Modified
		}
	}
	text, err := json.Marshal(envelope{version, 0, 1, value})
	if err != nil {
		return err
	}
	_, err = state.Commit(ctx,
		[]cluster.Condition{{Key: keys.Owner(volume)}, {Key: keys.Heritage(volume), Modified: before}},
		[]cluster.Change{{Key: keys.Heritage(volume), Value: text}})
	if errors.Is(err, cluster.ErrConflict) {
		err = fmt.Errorf("volume %s: %w: %w", volume, ErrSuperseded, err)
	}
	return err
}

// sight is what the state has of the volume at a moment.
type sight struct {
	envelope
	owner, value cluster.Revision
}

// look reads it. It fails if the claim does not stand.
func (l *Ledger) look(ctx context.Context) (now sight, err error) {
	c := &l.claim
	items, _, err := c.State.Get(ctx, c.Keys.Volume(c.Volume))
	if err != nil {
		return now, err
	}
	var owner ownership.Record
	for _, i := range items {
		switch i.Key {
		case c.Keys.Owner(c.Volume):
			now.owner = i.Modified
			owner, err = ownership.Parse(i.Value)
		case c.Value:
			now.value = i.Modified
			now.envelope, err = parse(i.Value)
		}
		if err != nil {
			return now, fmt.Errorf("%s: %w", i.Key, err)
		}
	}
	if owner.Node != c.Node || owner.Epoch != c.Epoch || owner.Standing == ownership.Free {
		return now, fmt.Errorf("volume %s: found node %q, epoch %d, %s: %w", c.Volume, owner.Node, owner.Epoch, owner.Standing, ErrSuperseded)
	}
	return now, nil
}

// Value returns what is in a key's value, of whatever owner.
func Value(stored []byte) (json.RawMessage, error) {
	e, err := parse(stored)
	return e.Value, err
}

// Wrap makes of something the value of a key that no owner has stored, as after a restore.
func Wrap(value json.RawMessage) ([]byte, error) {
	return json.Marshal(envelope{version, 0, rand.Uint64(), value})
}

func parse(text []byte) (e envelope, err error) {
	if err = json.Unmarshal(text, &e); err == nil && (e.Version != version || len(e.Value) == 0) {
		err = fmt.Errorf("found version %d and %d bytes, expected version %d", e.Version, len(e.Value), version)
	}
	return e, err
}

// Store replaces the value, which is JSON. If it was sent and not answered, Store goes on
// until it is known what has become of it. ctx is therefore the claim's: once it has ended
// the outcome may stay unknown (ErrUnknown). Other errors say that nothing has changed, but
// see ErrSuperseded.
func (l *Ledger) Store(ctx context.Context, value json.RawMessage) error {
	l.last++
	e := envelope{version, l.claim.Epoch, l.last, value}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if len(text) > MaxSize {
		return fmt.Errorf("%d bytes: %w", len(text), ErrTooLarge)
	}
	sent := false // without an answer
	for {
		stored, err := l.attempt(ctx, e, text)
		switch {
		case stored || errors.Is(err, ErrSuperseded):
			return err
		case errors.Is(err, cluster.ErrUnknown):
			sent = true
		case !sent && !errors.Is(err, cluster.ErrConflict):
			return err
		}
		if !pause(ctx) {
			if sent {
				err = errors.Join(cluster.ErrUnknown, err)
			}
			return err
		}
	}
}

// attempt looks before it commits: that tells what an earlier attempt has done, and a state
// without a quorum, which is better known before something is sent. ErrConflict says that
// the owner's record has changed, be it by this node, or that an earlier attempt was late.
func (l *Ledger) attempt(ctx context.Context, e envelope, text []byte) (stored bool, err error) {
	now, err := l.look(ctx)
	if err != nil {
		return false, err
	}
	if now.Epoch == e.Epoch && now.Change == e.Change {
		return true, nil
	}
	c := &l.claim
	_, err = c.State.Commit(ctx,
		[]cluster.Condition{{Key: c.Keys.Owner(c.Volume), Modified: now.owner}, {Key: c.Value, Modified: now.value}},
		[]cluster.Change{{Key: c.Value, Value: text}})
	return err == nil, err
}

// pause waits; false: ctx has ended.
func pause(ctx context.Context) bool {
	t := time.NewTimer(retry)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
