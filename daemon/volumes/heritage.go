package volumes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lunar/cluster"
	"lunar/cluster/heritage"
	"lunar/internal/durable"
	"lunar/target/scsi"
	"lunar/target/scsi/reservation"
)

// tenure is the time in which this server has the image of a shared volume open for a claim,
// and may change what outlives it.
type tenure struct {
	ledger  *heritage.Ledger
	seal    *sealing        // nil: the volume is not encrypted
	stored  bool            // the ledger had something
	brought bool            // it has what this server alone has kept
	ctx     context.Context // of the claim
	end     context.CancelFunc
}

// bequest is the value in the ledger. It has the image that it belongs to, so that a volume
// of the same name does not inherit it.
type bequest struct {
	Image string          `json:"image"`
	Unit  json.RawMessage `json:"unit"`
}

// inherit reads what earlier owners have left; nil: nothing. Without it the volume must not be
// served: a host that was fenced off could write again.
func (s *Shared) inherit(ctx context.Context, epoch uint64) (*scsi.Heritage, *tenure, error) {
	key := s.set.Cluster.Keys.Heritage(s.volume.Name)
	ledger, value, err := s.set.Cluster.Inherit(ctx, s.volume.Name, epoch, key)
	if err != nil {
		return nil, nil, fmt.Errorf("what the volume's last owner has left of it: %w", err)
	}
	t := &tenure{ledger: ledger, stored: value != nil}
	if value == nil {
		if value, err = s.bring(func(value json.RawMessage) error { return ledger.Store(ctx, value) }); err != nil {
			return nil, nil, err
		}
		t.brought = value != nil
	}
	left, err := s.parse(value)
	if err != nil {
		return nil, nil, fmt.Errorf("what the volume's last owner has left of it: %w; once no host uses the volume that may not, delete the key %q in the cluster's state", err, key)
	}
	if t.seal, err = s.unseal(ctx, epoch); err != nil {
		return nil, nil, err
	}
	t.ctx, t.end = context.WithCancel(context.Background())
	if t.seal != nil {
		t.seal.ctx = t.ctx
	}
	return left, t, nil
}

// Bequeath has the first owner of the volume find the reservations that it had when it was this
// server's alone.
func (s *Shared) Bequeath(ctx context.Context) error {
	_, err := s.bring(func(value json.RawMessage) error { return s.set.Cluster.Bequeath(ctx, s.volume.Name, value) })
	return err
}

// bring stores those reservations in the cluster's state, and returns what it has stored; nil: there
// were none.
func (s *Shared) bring(store func(json.RawMessage) error) (json.RawMessage, error) {
	file := s.set.reservationFile(&s.volume)
	had, err := file.peek()
	if had == nil || err != nil {
		return nil, err
	}
	if len(had.Registrations()) == 0 {
		return nil, file.Remove()
	}
	value, err := s.encode(&scsi.Heritage{Reservations: had})
	if err == nil {
		err = store(value)
	}
	if err != nil {
		return nil, fmt.Errorf("the reservations that this server has kept in %s, from before the volume had owners: %w; once no host uses the volume that may not, %s", file.Path(), err, file.Without())
	}
	s.image.Logger.Info("the volume's reservations of before it had owners are in the cluster's state", "registrations", len(had.Registrations()))
	return value, file.Remove()
}

func (s *Shared) encode(h *scsi.Heritage) (json.RawMessage, error) {
	unit, err := h.Encode()
	if err != nil {
		return nil, err
	}
	return json.Marshal(bequest{s.volume.Image, unit})
}

func (s *Shared) parse(value json.RawMessage) (*scsi.Heritage, error) {
	if value == nil {
		return nil, nil
	}
	var b bequest
	if err := durable.Strict(value, &b); err != nil {
		return nil, err
	}
	if b.Image != s.volume.Image {
		s.image.Logger.Warn("reservations and other state of another image with this volume's name are not the volume's", "found", b.Image, "expected", s.volume.Image)
		return nil, nil
	}
	return scsi.ParseHeritage(b.Unit)
}

// disown is told that the image holds nothing and was never open for a claim: it was made anew, and
// what the state has of its name is of another disk. That goes before the image notes that it was open,
// by which the next owner would not know any more. A header is not ours to remove: the earlier image may
// have another name now.
func (s *Shared) disown(t *tenure, header string) error {
	if t.seal != nil && t.seal.Header != nil && header == "" {
		return fmt.Errorf("encryption: found the header of an earlier image %s in the cluster's state, expected none for one that was made anew: take the volume out of the configuration, save the header if that image is still there under another name (lunar cluster header save %s FILE), and remove it (lunar cluster header remove %[2]s)", s.volume.Image, s.volume.Name)
	}
	if !t.stored {
		return nil
	}
	s.image.Logger.Warn("the volume's image was made anew: reservations and other state of the earlier one are not the volume's", "image", s.volume.Image)
	return s.store(t, &scsi.Heritage{Reservations: new(reservation.State)})
}

// saveHeritage implements scsi.LUConfig.SaveHeritage. Where there is no room for all unit
// attentions the older half of them goes.
func (s *Shared) saveHeritage(h *scsi.Heritage) error {
	t := s.tenure.Load()
	if t == nil {
		return scsi.ErrElsewhere
	}
	for next := *h; ; next.Owed = next.Owed[(len(next.Owed)+1)/2:] {
		err := s.store(t, &next)
		if len(next.Owed) == 0 || !errors.Is(err, heritage.ErrTooLarge) {
			return t.explain(err)
		}
	}
}

func (s *Shared) store(t *tenure, h *scsi.Heritage) error {
	value, err := s.encode(h)
	if err != nil {
		return err
	}
	return t.ledger.Store(t.ctx, value)
}

// explain says an error of the ledger as initiators hear of it.
func (t *tenure) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case t.ctx.Err() != nil || errors.Is(err, heritage.ErrSuperseded):
		return fmt.Errorf("%w: %w", scsi.ErrElsewhere, err)
	case errors.Is(err, cluster.ErrNoQuorum):
		return fmt.Errorf("%w: %w", scsi.ErrBusy, err)
	case errors.Is(err, heritage.ErrTooLarge):
		return fmt.Errorf("%w: %w", scsi.ErrTooLarge, err)
	}
	return err
}

// succeed has the logical unit go on with what was left.
func (s *Shared) succeed(t *tenure, left *scsi.Heritage) {
	s.tenure.Store(t)
	s.unit.Succeed(left)
}

// resign ends what succeed began. What is being saved may have been, which the next owner
// will see.
func (s *Shared) resign() {
	if t := s.tenure.Swap(nil); t != nil {
		t.end()
	}
	s.unit.Resign()
}
