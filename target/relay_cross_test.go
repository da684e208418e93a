package target_test

import (
	"bytes"
	"maps"
	"sync"
	"testing"

	"lunar/backstore/memstore"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/scsi"
)

// crossed is two servers, each of which serves one of two disks and relays to the other one.
func crossed(t *testing.T, memory int64, buffers int) *relayRig {
	store, err := memstore.New(memstore.Config{Size: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	second := &relayRig{} // who owns the second disk
	second.owner.Store(1)
	var units []*scsi.LogicalUnit
	r := &relayRig{memory: memory, buffers: buffers}
	r.beside = func(node int) []target.LUNMapping {
		lu, err := scsi.NewLogicalUnit(scsi.LUConfig{
			Name: "log", Store: &fenced{store, second, int32(node)}, Shared: true, Logger: testLogger(t),
			SaveHeritage: func(*scsi.Heritage) error { return nil },
			Access:       map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Transitioning}},
		})
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, lu)
		return []target.LUNMapping{{LUN: 1, LU: lu}}
	}
	r.open(t, 2)
	units[1].Succeed(nil)
	units[1].Settle(maps.Clone(r.access(1)), nil)
	n := r.nodes[0]
	units[0].Settle(maps.Clone(r.access(1)), testCarrier{n.links, r.nodes[1].name, 1, n})
	return r
}

// TestRelayCrossed: two nodes that relay more large commands to each other than there is memory for,
// neither of links nor of event threads, do all of them.
func TestRelayCrossed(t *testing.T) {
	r := crossed(t, 1<<20, 8<<20)
	const size, depth, each = 1 << 20, 6, 3
	var load sync.WaitGroup
	for node, n := range r.nodes {
		lun := uint64(1 - node)
		for i := range each {
			c := n.ready(byte(1 + node*each + i))
			if err := c.Ready(lun); err != nil {
				t.Fatal(err)
			}
			load.Go(func() {
				for round := range 3 {
					data := pattern(size, byte(1+round*10+i))
					lba := uint64(i * size / 512)
					ask(t, c, depth, initiator.Command{LUN: lun, CDB: cdbWrite16(lba, size/512), Out: data}, nil)
					ask(t, c, depth, initiator.Command{LUN: lun, CDB: cdbRead16(lba, size/512), InLen: size}, data)
				}
			})
		}
	}
	load.Wait()
}

// ask sends some commands at once, and those again that found no room for their data; it expects all to
// do well, and to read what is wanted.
func ask(t *testing.T, c *initiator.Conn, depth int, cmd initiator.Command, want []byte) {
	for depth > 0 {
		var tasks []*initiator.Task
		for range depth {
			task, err := c.Start(cmd)
			if err != nil {
				t.Error(err)
				return
			}
			tasks = append(tasks, task)
		}
		for _, task := range tasks {
			switch res, err := c.Wait(task); {
			case err == nil && (res.Status == initiator.StatusTaskSetFull || res.Status == initiator.StatusBusy):
			case err != nil || res.Status != 0 || !bytes.Equal(res.In, want):
				t.Errorf("status %#x, sense %x, %d bytes, %v", res.Status, res.Sense, len(res.In), err)
				return
			default:
				depth--
			}
		}
	}
}
