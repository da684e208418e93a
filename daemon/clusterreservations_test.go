package daemon

import (
	"encoding/binary"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target/scsi/reservation"
)

// reserve sends PERSISTENT RESERVE OUT, without regard to unit attentions, and returns how it
// ended.
func reserve(t *testing.T, c *initiator.Conn, action reservation.Action, key, serviceKey uint64, flags byte) byte {
	t.Helper()
	cdb := []byte{0x5f, byte(action), byte(reservation.WriteExclusiveRegistrantsOnly), 0, 0, 0, 0, 0, 24, 0}
	list := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, key), serviceKey)
	return ended(t, c, cdb, append(list, 0, 0, 0, 0, flags, 0, 0, 0))
}

// ended returns the status of a command: that of the one behind unit attentions and a path in
// transition.
func ended(t *testing.T, c *initiator.Conn, cdb, out []byte) byte {
	t.Helper()
	for range maxTries {
		r, err := c.Command(cdb, 0, out, 0)
		if err != nil {
			t.Fatal(err)
		}
		key, asc, ascq := r.SenseKey()
		if r.Status != 2 || key != 6 && [3]byte{key, asc, ascq} != [3]byte{2, 4, 0x0a} {
			return r.Status
		}
	}
	t.Fatalf("%x is in transition for ever", cdb)
	return 0
}

// maxTries bounds how often a command is sent again.
const maxTries = 1000

// registered are the keys that READ KEYS tells, with PRGENERATION before them.
func registered(t *testing.T, c *initiator.Conn) (all []uint64) {
	t.Helper()
	cdb := []byte{0x5e, 0, 0, 0, 0, 0, 0, 1, 0, 0}
	for range maxTries {
		r, err := c.Command(cdb, 0, nil, 256)
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == 2 {
			continue // a unit attention, or in transition
		}
		all = append(all, uint64(binary.BigEndian.Uint32(r.In)))
		for at := 8; at+8 <= len(r.In); at += 8 {
			all = append(all, binary.BigEndian.Uint64(r.In[at:]))
		}
		return all
	}
	t.Fatal("PERSISTENT RESERVE IN is in transition for ever")
	return nil
}

// told has a host be told that its registration was preempted, by an owner that has only
// inherited that.
func (l *lab) told(c *initiator.Conn) {
	l.t.Helper()
	var codes [][3]byte
	eventually.Holds(l.t, "a host is told that it was preempted", func() bool {
		r, err := c.Command(make([]byte, 6), 0, nil, 0)
		if err != nil {
			l.t.Fatal(err)
		}
		key, asc, ascq := r.SenseKey()
		codes = append(codes, [3]byte{key, asc, ascq})
		return codes[len(codes)-1] == [3]byte{6, 0x2a, 5}
	})
}

const (
	good        = 0x00
	busy        = 0x08
	conflicting = 0x18
)

// TestClusterReservations: reservations are where the volume is, through a move and the death
// of its owner: they are enforced, and known.
func TestClusterReservations(t *testing.T) {
	l := newLab(t, "")
	owned := func(by string) {
		t.Helper()
		eventually.Holds(t, "all know that the volume is node "+by+"'s", func() bool {
			return l.owner("n1") == by && l.owner("n2") == by && l.owner("n3") == by
		})
	}
	owned("n1")
	host := func(node, name string) *initiator.Conn {
		t.Helper()
		return dial(t, l.nodes[node].portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: "iqn.2026-11.test:" + name})
	}
	block := make([]byte, 512)
	expect := func(what string, got, want byte) {
		t.Helper()
		if got != want {
			t.Errorf("%s: status %#x, expected %#x", what, got, want)
		}
	}
	a, b := host("n1", "a"), host("n1", "b")
	eventually.Holds(t, "the owner knows of all portal groups", func() bool {
		r, err := a.Command([]byte{0xa3, 0x0a, 9: 128, 11: 0}, 0, nil, 128)
		return err == nil && len(r.In) == 4+3*12
	})
	const allPorts = 0x04
	expect("register", reserve(t, a, reservation.Register, 0, 0xa, allPorts), good)
	expect("reserve", reserve(t, a, reservation.Reserve, 0xa, 0, 0), good)
	expect("write of another", ended(t, b, cdb10Of(0x2a, 1), block), conflicting)
	if said := l.lunar("n1", cli.ExitOK, "reservations", "show", "db"); strings.Count(said, "0x000000000000000a") != 3 {
		t.Errorf("found %q, expected a registration with each node's port", said)
	}
	if said := l.lunar("n2", cli.ExitOK, "reservations", "show", "db"); !strings.Contains(said, "ask n1") {
		t.Errorf("found %q by a node that does not serve the volume", said)
	}
	if said := l.lunar("n2", cli.ExitFailure, "reservations", "clear", "db", "--yes"); !strings.Contains(said, "found that node n1 serves volume db") {
		t.Errorf("found %q by a node that does not serve the volume", said)
	}

	l.network.SetQuorum(false)
	expect("register without a quorum", reserve(t, b, reservation.Register, 0, 0xb, 0), busy)
	expect("write without a quorum", ended(t, a, cdb10Of(0x2a, 1), block), good)
	l.network.SetQuorum(true)

	l.lunar("n1", cli.ExitOK, "cluster", "move", "db", "n2")
	owned("n2")
	a, b = host("n2", "a"), host("n2", "b")
	if got := registered(t, a); len(got) != 4 || got[0] != 1 {
		t.Errorf("found generation and keys %x after a move", got)
	}
	expect("write of another", ended(t, b, cdb10Of(0x2a, 1), block), conflicting)
	expect("write of the holder by another port", ended(t, a, cdb10Of(0x2a, 1), block), good)
	expect("register", reserve(t, b, reservation.Register, 0, 0xb, allPorts), good)
	expect("preempt", reserve(t, b, reservation.Preempt, 0xb, 0xa, 0), good)

	c := host("n3", "a")
	if got := registered(t, c); len(got) != 4 || got[1] != 0xb {
		t.Errorf("found generation and keys %x by a node that does not own the volume", got)
	}
	expect("register by such a node", reserve(t, c, reservation.Register, 0, 0xc, 0), good)
	expect("write by it", ended(t, c, cdb10Of(0x2a, 1), block), good)
	expect("preempt what it has registered", reserve(t, b, reservation.PreemptAndAbort, 0xb, 0xc, 0), good)

	l.network.Cut("n2", true) // it dies for the others
	l.wires.CutAll("n2", true)
	eventually.Holds(t, "another node owns the volume", func() bool { o := l.owner("n3"); return o == "n1" || o == "n3" })
	l.told(c)
	expect("write of the preempted", ended(t, c, cdb10Of(0x2a, 1), block), conflicting)
	next := l.owner("n3")
	a, b = host(next, "a"), host(next, "b")
	if got := registered(t, b); len(got) != 4 || got[0] != 5 || got[1] != 0xb {
		t.Errorf("found generation and keys %x after the owner's death", got)
	}
	expect("write of the preempted", ended(t, a, cdb10Of(0x2a, 1), block), conflicting)
	expect("write of the new holder", ended(t, b, cdb10Of(0x2a, 1), block), good)
	if said := l.lunar(next, cli.ExitOK, "reservations", "clear", "db", "--yes"); !strings.Contains(said, "0x000000000000000b") {
		t.Errorf("found %q", said)
	}
	expect("write when they are cleared", ended(t, a, cdb10Of(0x2a, 1), block), good)
	l.network.Cut("n2", false)
	l.wires.CutAll("n2", false)
}
