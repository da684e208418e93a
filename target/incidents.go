package target

import (
	"sync/atomic"

	"lunar/target/pdu"
	"lunar/target/scsi/sense"
)

// maxSense bounds the kinds of sense data that are counted apart: the server has fewer.
const maxSense = 128

// incidents counts what an event thread has told of errors: it writes, anyone may read.
type incidents struct {
	_             [cacheLine]byte
	sense         [maxSense]senseCount
	functions     [16]atomic.Uint64 // task management, by function
	aborted       atomic.Uint64     // commands
	headerDigests atomic.Uint64
	dataDigests   atomic.Uint64
	_             [cacheLine]byte
}

// senseCount counts sense data of one kind; 0: the place is free.
type senseCount struct {
	kind  atomic.Uint32 // 1<<24 | key<<16 | additional sense code
	count atomic.Uint64
}

// sensed counts sense data that an initiator is told.
func (n *incidents) sensed(s *sense.Data) {
	kind := 1<<24 | uint32(s.Key)<<16 | uint32(s.ASC)
	for i := range n.sense {
		place := &n.sense[i]
		if place.kind.Load() == 0 {
			place.kind.Store(kind)
		}
		if place.kind.Load() == kind {
			place.count.Add(1)
			return
		}
	}
}

// functioned counts a task management function that was asked for.
func (n *incidents) functioned(f pdu.TaskManagementFunction) {
	n.functions[uint(f)%uint(len(n.functions))].Add(1)
}

// Incidents are what all event threads have told of errors since the start.
type Incidents struct {
	Sense                      map[SenseKind]uint64
	Functions                  map[pdu.TaskManagementFunction]uint64 // task management that was asked for
	Aborted                    uint64                                // commands that ended without a status
	HeaderDigests, DataDigests uint64                                // of PDUs that came damaged
}

// SenseKind is what sense data are counted by.
type SenseKind struct {
	Key sense.Key
	ASC sense.ASC
}

// addTo adds what the thread has counted.
func (n *incidents) addTo(sum *Incidents) {
	for i := range n.sense {
		kind := n.sense[i].kind.Load()
		if kind == 0 {
			break
		}
		sum.Sense[SenseKind{sense.Key(kind >> 16), sense.ASC(kind)}] += n.sense[i].count.Load()
	}
	for f := range n.functions {
		if c := n.functions[f].Load(); c > 0 {
			sum.Functions[pdu.TaskManagementFunction(f)] += c
		}
	}
	sum.Aborted += n.aborted.Load()
	sum.HeaderDigests += n.headerDigests.Load()
	sum.DataDigests += n.dataDigests.Load()
}
