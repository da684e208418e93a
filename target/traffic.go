package target

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// cacheLine keeps what one thread writes apart from what others do, in bytes.
const cacheLine = 64

// traffic is what the data path of a session counts: its event thread writes,
// anyone may read. It does not move or grow.
type traffic struct {
	_        [cacheLine]byte
	inFlight atomic.Int64
	opened   time.Time
	_        [cacheLine]byte
}

// lunTraffic is the part of one LUN, or of one connection.
type lunTraffic struct {
	_                                    [cacheLine]byte
	reads, writes, others, read, written atomic.Uint64
	_                                    [cacheLine]byte
}

func newTraffic() *traffic { return &traffic{opened: time.Now()} }

func (t *lunTraffic) sum() Traffic {
	return Traffic{t.reads.Load(), t.writes.Load(), t.others.Load(), t.read.Load(), t.written.Load()}
}

// Traffic counts commands that have ended, however, and the data that they moved.
type Traffic struct {
	Reads        uint64 // commands with Data-In
	Writes       uint64 // commands with Data-Out
	Others       uint64 // commands without data
	ReadBytes    uint64 // of Data-In, sent or about to be
	WrittenBytes uint64 // of Data-Out, of commands that ended with GOOD status
}

func (t Traffic) plus(o Traffic) Traffic {
	return Traffic{t.Reads + o.Reads, t.Writes + o.Writes, t.Others + o.Others, t.ReadBytes + o.ReadBytes, t.WrittenBytes + o.WrittenBytes}
}

// ConnectionStats describe a connection of a session.
type ConnectionStats struct {
	CID           uint16
	Local, Remote netip.AddrPort
	Lost          bool    // its tasks wait for another connection (ErrorRecoveryLevel 2)
	Traffic       Traffic // of tasks that ended on it
}

// shownConnection is a connection for anyone to read.
type shownConnection struct {
	ConnectionStats
	carried *lunTraffic
}
