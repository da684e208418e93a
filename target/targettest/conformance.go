package targettest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"lunar/internal/initiator"
)

// Subject is a target behind a transport. LUN 0 is a writable volume of
// VolumeSize bytes or more, LUN 5 does not exist.
type Subject struct {
	// Login opens a session with the target; it ends with the test. Digests
	// that o asks for are the subject's to add.
	Login func(t *testing.T, o initiator.Options) *initiator.Conn
	// BlockSize is the volume's logical block length in bytes.
	BlockSize int
	// Assisted is of a transport that moves data by itself (RFC 7145), else nil.
	Assisted *Assisted
}

// Assisted is what iSER-assisted mode changes for the initiator. Login translates the
// RDMA Reads that fetch the data of a write into R2Ts.
type Assisted struct {
	// Immediate is how many bytes a write may bring along at most; 0 for none.
	Immediate int
	// Control is the longest data segment of a PDU that is no Data-In: what
	// initiators have buffers for.
	Control int
	// Reads is how many RDMA Reads a connection may have under way, at least.
	Reads int
}

// VolumeSize is how many bytes of the volume the tests use.
const VolumeSize = 8 << 20

// NoLUN is the number of a logical unit that does not exist.
const NoLUN = 5

// session is a Conn with what the tests do to it.
type session struct {
	*initiator.Conn
	t         *testing.T
	blockSize int
	assisted  *Assisted
	holds     int // tasks that held has started
}

// isid numbers a test's sessions: each is another initiator port.
func isid(n byte) [6]byte { return [6]byte{0x80, 0, 0, 0, 1, n} }

// login opens the n-th session and works off its unit attentions.
func (s Subject) login(t *testing.T, n byte, keys ...initiator.Key) *session {
	t.Helper()
	c := s.Login(t, initiator.Options{ISID: isid(n), Keys: keys})
	if err := c.Ready(0); err != nil {
		t.Fatalf("unit not ready: %v", err)
	}
	return &session{Conn: c, t: t, blockSize: s.BlockSize, assisted: s.Assisted}
}

// key is short for a text key.
func key(name, value string) initiator.Key { return initiator.Key{Name: name, Value: value} }

// CDBs of READ(16) and WRITE(16).
func read16(lba, blocks int) []byte {
	cdb := make([]byte, 16)
	cdb[0] = 0x88
	binary.BigEndian.PutUint64(cdb[2:], uint64(lba))
	binary.BigEndian.PutUint32(cdb[10:], uint32(blocks))
	return cdb
}

func write16(lba, blocks int) []byte {
	cdb := read16(lba, blocks)
	cdb[0] = 0x8a
	return cdb
}

// noise is where pattern cuts its bytes from.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, VolumeSize)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
})

// pattern is n bytes, at most half of VolumeSize, that differ by place and seed.
func pattern(n, seed int) []byte {
	from := seed * 521 % (VolumeSize / 2)
	return bytes.Clone(noise()[from:][:n])
}

// writing is a command that writes out at byte offset off.
func (s *session) writing(off int, out []byte) initiator.Command {
	return initiator.Command{CDB: write16(off/s.blockSize, len(out)/s.blockSize), Out: out, Attr: initiator.AttrSimple}
}

func (s *session) reading(off, n int) initiator.Command {
	return initiator.Command{CDB: read16(off/s.blockSize, n/s.blockSize), InLen: n, Attr: initiator.AttrSimple}
}

func (s *session) start(cmd initiator.Command) *initiator.Task {
	s.t.Helper()
	task, err := s.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	return task
}

func (s *session) do(cmd initiator.Command) *initiator.Result {
	s.t.Helper()
	r, err := s.Do(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *session) good(r *initiator.Result) *initiator.Result {
	s.t.Helper()
	if r.Status != initiator.StatusGood {
		s.t.Fatalf("status %#02x, sense %x, expected GOOD", r.Status, r.Sense)
	}
	return r
}

func (s *session) wait(task *initiator.Task) *initiator.Result {
	s.t.Helper()
	r, err := s.Wait(task)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *session) write(off int, out []byte) {
	s.t.Helper()
	s.good(s.do(s.writing(off, out)))
}

// expect reads back and compares.
func (s *session) expect(off int, want []byte) {
	s.t.Helper()
	got := s.good(s.do(s.reading(off, len(want)))).In
	if i := firstDifference(got, want); i >= 0 {
		s.t.Fatalf("%d bytes from %d: byte %d differs from what was written", len(want), off, i)
	}
}

func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// expectSense checks a CHECK CONDITION.
func (s *session) expectSense(r *initiator.Result, key, asc byte) {
	s.t.Helper()
	k, a, q := r.SenseKey()
	if r.Status != initiator.StatusCheckCondition || k != key || a != asc {
		s.t.Fatalf("status %#02x, sense %x/%02x/%02x, expected %x/%02x", r.Status, k, a, q, key, asc)
	}
}

// alive checks that the session still serves commands.
func (s *session) alive() {
	s.t.Helper()
	s.expect(VolumeSize-s.blockSize, s.good(s.do(s.reading(VolumeSize-s.blockSize, s.blockSize))).In)
}

// awaitR2Ts steps until the task holds n R2Ts.
func (s *session) awaitR2Ts(task *initiator.Task, n int) {
	s.t.Helper()
	for len(task.R2Ts) < n && !task.Done {
		if _, err := s.Step(0); err != nil {
			s.t.Fatal(err)
		}
	}
	if task.Done {
		s.t.Fatalf("ended with status %#02x, expected %d R2Ts", task.Result.Status, n)
	}
}

// letGo sends what a task holds back, and what it is asked for from now on.
func (s *session) letGo(task *initiator.Task) {
	s.t.Helper()
	task.Command.HoldData = false
	for len(task.R2Ts) > 0 {
		if err := s.SendData(task); err != nil {
			s.t.Fatal(err)
		}
	}
}

// ask sends a request that is no SCSI command, ahead of all others.
func (s *session) ask(p *initiator.PDU) *initiator.PDU {
	s.t.Helper()
	if err := s.Ask(p, true); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// ping sends a NOP-Out.
func (s *session) ping(data []byte) *initiator.PDU {
	s.t.Helper()
	p := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, data)
	p.SetU32(initiator.AtTTT, initiator.NoTag)
	return s.ask(p)
}

// answers steps until the last of the requests is answered, and returns the answers to
// those that are.
func (s *session) answers(requests ...*initiator.PDU) []*initiator.PDU {
	s.t.Helper()
	found := make([]*initiator.PDU, len(requests))
	for found[len(found)-1] == nil {
		p, err := s.Step(0)
		if err != nil {
			s.t.Fatal(err)
		}
		for i, r := range requests {
			if p.ITT() == r.ITT() {
				found[i] = p
			}
		}
	}
	return found
}

// expectEnd checks that the target closes the connection.
func (s *session) expectEnd() {
	s.t.Helper()
	for {
		_, err := s.Receive(0)
		if errors.Is(err, initiator.ErrClosed) {
			return
		}
		if err != nil {
			s.t.Fatalf("%v, expected the target to close the connection", err)
		}
	}
}
