package volumes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
	"lunar/cluster"
	"lunar/cluster/heritage"
	"lunar/cluster/mem"
	"lunar/cluster/ownership"
	"lunar/conf"
	"lunar/target/scsi"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

// heir is a shared volume on a node that owns it since an epoch.
func heir(t *testing.T, network *mem.Network, image string, epoch uint64) *Shared {
	t.Helper()
	keys := cluster.KeysOf("c")
	r := ownership.Record{Node: "n", Epoch: epoch, Standing: ownership.Claiming}
	if _, err := network.Store.Commit(nil, []cluster.Change{{Key: keys.Owner("v"), Value: r.Encode()}}); err != nil {
		t.Fatal(err)
	}
	set := &Set{Config: Config{Cluster: &Cluster{
		Keys: keys,
		Inherit: func(ctx context.Context, volume string, epoch uint64, value string) (*heritage.Ledger, json.RawMessage, error) {
			return heritage.Open(ctx, heritage.Claim{State: network.State("n"), Keys: keys, Volume: volume, Node: "n", Epoch: epoch, Value: value})
		},
	}}}
	return &Shared{set: set, volume: conf.Volume{Name: "v", Image: image}, image: rbd.Config{Logger: slog.New(slog.DiscardHandler)}}
}

// owns has it own the volume, and returns what it has inherited.
func (s *Shared) owns(t *testing.T, epoch uint64) *scsi.Heritage {
	t.Helper()
	left, tenure, err := s.inherit(t.Context(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tenure.end)
	s.tenure.Store(tenure)
	return left
}

// crowd is as many registrations as there may be, with names of a length.
func crowd(t *testing.T, length int) *scsi.Heritage {
	t.Helper()
	h := &scsi.Heritage{Reservations: new(reservation.State)}
	for i := range reservation.MaxRegistrations {
		name := fmt.Sprintf("%0*d", length, i)
		from := reservation.Nexus{Initiator: reservation.PortName(name, 1), Target: strings.Repeat("t", length), Port: 1}
		change, refusal := h.Reservations.Apply(&reservation.Request{From: from, Holder: name, ServiceKey: 1})
		if refusal != nil {
			t.Fatal(refusal)
		}
		h.Reservations = change.Next
		h.Owed = append(h.Owed, scsi.Owed{Nexus: from, ASC: sense.ASCReservationsReleased})
	}
	return h
}

// TestHeritageFits: as many registrations as there may be are stored, with names at their
// longest; of unit attentions the latest, as far as there is room.
func TestHeritageFits(t *testing.T) {
	network := mem.NewNetwork()
	s := heir(t, network, "rbd/db", 1)
	if left := s.owns(t, 1); left != nil {
		t.Errorf("found %+v before anything was stored", left)
	}
	if err := s.saveHeritage(crowd(t, 223)); err != nil {
		t.Fatal(err)
	}
	left := heir(t, network, "rbd/db", 2).owns(t, 2)
	if n := len(left.Reservations.Registrations()); n != reservation.MaxRegistrations {
		t.Errorf("found %d registrations", n)
	}
	if n := len(left.Owed); n == 0 || n == reservation.MaxRegistrations || left.Owed[n-1].Initiator != reservation.PortName(fmt.Sprintf("%0223d", reservation.MaxRegistrations-1), 1) {
		t.Errorf("found %d unit attentions, expected some, and the latest", n)
	}
	if err := s.saveHeritage(left); !errors.Is(err, scsi.ErrElsewhere) {
		t.Errorf("found %v of a superseded owner", err)
	}
}

// TestHeritageErrors: what initiators are told of the state's errors.
func TestHeritageErrors(t *testing.T) {
	network := mem.NewNetwork()
	s := heir(t, network, "rbd/db", 1)
	small := crowd(t, 3)
	if err := s.saveHeritage(small); !errors.Is(err, scsi.ErrElsewhere) {
		t.Errorf("found %v before it owns the volume", err)
	}
	s.owns(t, 1)
	if err := s.saveHeritage(crowd(t, 600)); !errors.Is(err, scsi.ErrTooLarge) {
		t.Errorf("found %v of too much", err)
	}
	network.SetQuorum(false)
	if err := s.saveHeritage(small); !errors.Is(err, scsi.ErrBusy) {
		t.Errorf("found %v without a quorum", err)
	}
	network.SetQuorum(true)
	if err := s.saveHeritage(small); err != nil {
		t.Error(err)
	}
	s.tenure.Load().end()
	if err := s.saveHeritage(small); !errors.Is(err, scsi.ErrElsewhere) {
		t.Errorf("found %v when the claim has ended", err)
	}
}

// TestReservationsOfBefore: the reservations that a volume had as one server's alone are in force when it
// has owners, whoever is the first one; they are not put in place of what an owner has.
func TestReservationsOfBefore(t *testing.T) {
	from := reservation.Nexus{Initiator: reservation.PortName("iqn.h", 1), Target: "iqn.t", Port: 1}
	change, refusal := new(reservation.State).Apply(&reservation.Request{From: from, ServiceKey: 1, Persist: true})
	if refusal != nil {
		t.Fatal(refusal)
	}
	before := change.Next
	alone := func(s *Shared) {
		t.Helper()
		s.set.StateDir = t.TempDir()
		if err := s.set.reservationFile(&s.volume).save(before); err != nil {
			t.Fatal(err)
		}
	}
	bequeath := func(network *mem.Network, s *Shared) error {
		s.set.Cluster.Bequeath = func(ctx context.Context, volume string, value json.RawMessage) error {
			return heritage.Bequeath(ctx, network.State("n"), cluster.KeysOf("c"), volume, value)
		}
		return s.Bequeath(t.Context())
	}
	keeps := func(s *Shared) bool {
		had, err := s.set.reservationFile(&s.volume).peek()
		return had != nil || err != nil
	}

	network := mem.NewNetwork()
	s := heir(t, network, "rbd/db", 1) // which is the first owner
	alone(s)
	if left := s.owns(t, 1); left == nil || len(left.Reservations.Registrations()) != len(before.Registrations()) || keeps(s) {
		t.Errorf("found %+v, and a file: %v", left, keeps(s))
	}
	if left := heir(t, network, "rbd/db", 2).owns(t, 2); left == nil || len(left.Reservations.Registrations()) == 0 {
		t.Errorf("the next owner found %+v", left)
	}
	alone(s)
	if err := bequeath(network, s); !errors.Is(err, heritage.ErrSuperseded) || !keeps(s) {
		t.Errorf("found %v where there is an owner, and a file: %v", err, keeps(s))
	}

	network = mem.NewNetwork()
	s = heir(t, network, "rbd/db", 1)
	alone(s)
	if _, err := network.Store.Commit(nil, []cluster.Change{{Key: cluster.KeysOf("c").Owner("v"), Delete: true}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is no harm
		alone(s)
		if err := bequeath(network, s); err != nil || keeps(s) {
			t.Errorf("found %v where there is no owner, and a file: %v", err, keeps(s))
		}
	}
	if left := heir(t, network, "rbd/db", 1).owns(t, 1); left == nil || len(left.Reservations.Registrations()) != len(before.Registrations()) {
		t.Errorf("the first owner found %+v", left)
	}
}

// TestHeritageOfAnother: a volume does not inherit what one of its name with another image had,
// and does not go without what it cannot read.
func TestHeritageOfAnother(t *testing.T) {
	network := mem.NewNetwork()
	s := heir(t, network, "rbd/db", 1)
	s.owns(t, 1)
	if err := s.saveHeritage(crowd(t, 3)); err != nil {
		t.Fatal(err)
	}
	if left := heir(t, network, "rbd/other", 2).owns(t, 2); left != nil {
		t.Errorf("found %+v", left)
	}
	other := heir(t, network, "rbd/db", 3)
	if _, err := network.Store.Commit(nil, []cluster.Change{{Key: cluster.KeysOf("c").Heritage("v"), Value: []byte(`{"version":1,"epoch":1,"change":1,"value":{"image":"rbd/db","unit":{"version":9}}}`)}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.inherit(t.Context(), 3); err == nil || !strings.Contains(err.Error(), `delete the key "/lunar/c/volumes/v/heritage"`) {
		t.Errorf("found %v", err)
	}
}

// TestImageMadeAnew: an image that is made anew under the name of one that is gone is another disk: it
// has no reservation of that, whoever opens it and however often, and not its header. One whose
// metadata are lost, and not its data, is the same.
func TestImageMadeAnew(t *testing.T) {
	v := newVault(t)
	holds := func(name string, want int) {
		t.Helper()
		s := v.server(name, nil)
		v.owns(s)
		if now, _ := s.unit.Reservations(); len(now.Registrations()) != want {
			t.Errorf("found %d registrations by %s, expected %d", len(now.Registrations()), name, want)
		}
		if want == 0 {
			return
		}
		if err := s.saveHeritage(crowd(t, 3)); err != nil {
			t.Fatal(err)
		}
	}
	s := v.server("n1", nil)
	v.owns(s)
	if err := s.saveHeritage(crowd(t, 3)); err != nil {
		t.Fatal(err)
	}
	v.lane(s, func(c *backstoretest.Client) { c.Write(v, 0, backstoretest.Pattern(4096, 1)) })
	holds("n2", reservation.MaxRegistrations)
	v.ceph.With("rbd/db", true, nil, map[string]string{rbd.EpochNote: ""})
	holds("n1", reservation.MaxRegistrations)
	v.ceph.Create("rbd/db", 1<<20)
	v.owners = nil
	holds("n2", 0)
	holds("n1", 0)

	v = newVault(t)
	v.owns(v.keyed("n1", 1))
	v.owns(v.keyed("n2", 1))
	v.ceph.Create("rbd/db", 1<<20)
	v.owners = nil
	kept := v.header()
	v.refuses(v.keyed("n1", 1), "lunar cluster header remove db")
	v.refuses(v.keyed("n2", 1), "lunar cluster header remove db")
	if !bytes.Equal(v.header(), kept) {
		t.Error("the header of the earlier image is not there any more")
	}
	if _, err := v.network.Store.Commit(nil, []cluster.Change{{Key: v.keys.Header("db"), Delete: true}}); err != nil {
		t.Fatal(err)
	}
	v.owns(v.keyed("n1", 1))
}
