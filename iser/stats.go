package iser

import "sync/atomic"

// counters count what one event thread does with one device; the thread writes,
// anyone may read.
type counters struct {
	_    [64]byte
	live atomic.Int64 // connections
	posts, sends, writes, reads, receives,
	invalidates, written, read, bounced, polls, arms, failures atomic.Uint64
	_ [64]byte
}

// Stats count what was done with a device since the start.
type Stats struct {
	Device      string
	Connections int    // now
	Posts       uint64 // lists of work given to send queues
	Sends       uint64 // PDUs to initiators
	Writes      uint64 // RDMA Writes
	Reads       uint64 // RDMA Reads
	Receives    uint64 // PDUs of initiators
	Invalidates uint64 // of Sends, those that invalidated the initiator's key
	WriteBytes  uint64 // moved by RDMA Writes
	ReadBytes   uint64 // moved by RDMA Reads
	Bounced     uint64 // bytes of RDMA Writes that had to be copied first: parameter data
	Polls       uint64 // looks into completion queues that found something
	Arms        uint64 // completion queues armed before sleep
	Failures    uint64 // connections that a failed completion ended
	Registered  int64  // bytes of memory that the device may use
}

func (c *counters) addTo(s *Stats) {
	s.Connections += int(c.live.Load())
	s.Posts += c.posts.Load()
	s.Sends += c.sends.Load()
	s.Writes += c.writes.Load()
	s.Reads += c.reads.Load()
	s.Receives += c.receives.Load()
	s.Invalidates += c.invalidates.Load()
	s.WriteBytes += c.written.Load()
	s.ReadBytes += c.read.Load()
	s.Bounced += c.bounced.Load()
	s.Polls += c.polls.Load()
	s.Arms += c.arms.Load()
	s.Failures += c.failures.Load()
}
