package target_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"lunar/backstore/memstore"
	"lunar/internal/initiator"
	"lunar/internal/refusals"
	"lunar/target"
	"lunar/target/scsi"
	"lunar/target/targettest"
)

// wire is what both transports of initiators are.
type wire interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// severed is a transport that breaks off, in the middle of whatever it moves, when so
// many bytes have gone the one way or the other.
type severed struct {
	wire
	out, in int // bytes that still go through
	broken  bool
}

func (s *severed) sever() { s.broken = true; s.Close() }

// Write implements io.Writer.
func (s *severed) Write(b []byte) (int, error) {
	n, err := s.wire.Write(b[:min(len(b), s.out)])
	s.out -= n
	if n < len(b) && err == nil {
		s.sever()
		err = io.ErrClosedPipe
	}
	return n, err
}

// Read implements io.Reader.
func (s *severed) Read(b []byte) (int, error) {
	if s.in == 0 {
		s.sever()
		return 0, io.EOF
	}
	n, err := s.wire.Read(b[:min(len(b), s.in)])
	s.in -= n
	return n, err
}

// buffered reports whether there may be something to read.
func (s *severed) buffered() bool {
	m, ok := s.wire.(*targettest.Conn)
	return ok && (m.Buffered() > 0 || m.Ended())
}

// recoveringRun is a session at ErrorRecoveryLevel 2 whose connections are severed all
// the time, beside a byte slice that knows what the volume holds.
type recoveringRun struct {
	rt     *rapid.T
	server *served
	dial   func() wire
	most   int // connections
	conns  []*initiator.Conn
	image  []byte
	live   []*recoveringTask
	cuts   int
}

type recoveringTask struct {
	modelTask
	conn *initiator.Conn
}

func (m *recoveringRun) severedWire() *severed {
	limit := func(name string) int {
		return rapid.SampledFrom([]int{100, 700, 3000, 20_000, 150_000, 1 << 20}).Draw(m.rt, name) + rapid.IntRange(0, 2000).Draw(m.rt, name+" more")
	}
	s := &severed{wire: m.dial(), out: 1 << 40, in: 1 << 40}
	if m.cuts < 12 {
		s.out, s.in = limit("bytes out"), limit("bytes in")
	}
	return s
}

// join adds a connection, or fails when it is severed during login.
func (m *recoveringRun) join(of *initiator.Conn, cid uint16) *initiator.Conn {
	w := m.severedWire()
	recv := rapid.SampledFrom([]string{"512", "1001", "8192", "262144"}).Draw(m.rt, "MaxRecvDataSegmentLength")
	o := initiator.Options{Target: testTarget, CID: cid, Keys: initiator.Keys{{Name: "MaxRecvDataSegmentLength", Value: recv}}}
	if _, ok := w.wire.(*net.TCPConn); ok && rapid.Bool().Draw(m.rt, "digests") {
		o.HeaderDigest, o.DataDigest = "CRC32C", "CRC32C"
	}
	c, err := of.JoinOver(w, o)
	if f := (*initiator.LoginFailure)(nil); errors.As(err, &f) && f.Class == 2 && f.Detail == 6 {
		w.Close() // the target has not seen yet that others have ended
		time.Sleep(time.Millisecond)
		return nil
	}
	if err != nil {
		m.mustBeBroken(w, err)
		return nil
	}
	return c
}

func (m *recoveringRun) mustBeBroken(w *severed, err error) {
	m.rt.Helper()
	w.Close()
	if !w.broken && !errors.Is(err, initiator.ErrClosed) {
		m.rt.Fatal(err)
	}
	m.cuts++
}

// lost is called when a connection has failed: its tasks go on on another one, which
// may fail as well.
func (m *recoveringRun) lost(c *initiator.Conn, err error) {
	m.mustBeBroken(c.Transport().(*severed), err)
	m.conns = slices.DeleteFunc(m.conns, func(o *initiator.Conn) bool { return o == c })
	losses := []*loss{{conn: c}}
	for late := time.Now().Add(patience); len(losses) > 0; {
		if time.Now().After(late) {
			m.fail("the session cannot be continued")
		}
		n := m.successor(losses[0].conn, func(cid uint16) {
			for _, l := range losses {
				l.removed = l.removed || l.conn.CID == cid
			}
		})
		if n == nil {
			continue
		}
		if err = m.takeOver(n, losses); err == nil {
			return
		}
		m.mustBeBroken(n.Transport().(*severed), err)
		m.conns = slices.DeleteFunc(m.conns, func(o *initiator.Conn) bool { return o == n })
		losses = append(losses, &loss{conn: n})
	}
}

// loss is a connection that has failed; removed says that it is logged out.
type loss struct {
	conn    *initiator.Conn
	removed bool
}

// successor is another connection, or a new one with the same or another CID.
func (m *recoveringRun) successor(c *initiator.Conn, displaced func(cid uint16)) *initiator.Conn {
	if len(m.conns) > 0 && rapid.Bool().Draw(m.rt, "on another") {
		return m.conns[rapid.IntRange(0, len(m.conns)-1).Draw(m.rt, "which")]
	}
	cid := c.CID
	if rapid.Bool().Draw(m.rt, "new CID") {
		cid = m.freeCID()
	}
	n := m.join(c, cid)
	if n != nil {
		displaced(cid)
		m.conns = append(m.conns, n)
	}
	return n
}

func (m *recoveringRun) freeCID() uint16 {
	m.most++ // of all that were used
	return uint16(m.most)
}

// takeOver continues the tasks of the connections that have failed on n. A task may
// have allegiance to any of them: so all have to be logged out first.
func (m *recoveringRun) takeOver(n *initiator.Conn, losses []*loss) error {
	for _, l := range losses {
		if l.removed {
			continue
		}
		code, _, retain, err := n.LogoutOf(2, l.conn.CID)
		if err != nil {
			return err
		}
		if code > 1 || code == 0 && retain == 0 { // 1: an answer that was lost has removed it already
			m.rt.Fatalf("logout for recovery of CID %d: response %d, Time2Retain %d", l.conn.CID, code, retain)
		}
		l.removed = true
	}
	for _, l := range losses {
		for _, task := range m.live {
			if task.conn == l.conn && !task.Done {
				task.conn = n
			}
		}
		if err := n.TakeOver(l.conn); err != nil {
			m.bounded()
			return err
		}
	}
	return nil
}

// bounded ends a run in which the server has discarded what lost connections kept beyond
// what they may: the initiator does not get its answers.
func (m *recoveringRun) bounded() {
	for _, th := range m.server.Threads() {
		if th.Refused[refusals.Retention.String()] > 0 {
			m.rt.Skip("lost connections have kept more than they may")
		}
	}
}

// fail ends a run that does not go on.
func (m *recoveringRun) fail(why string) {
	m.rt.Helper()
	m.bounded()
	m.rt.Fatal(why)
}

func (m *recoveringRun) start() {
	cmd, off := drawCommand(m.rt)
	if len(m.conns) == 0 || slices.ContainsFunc(m.live, func(l *recoveringTask) bool { return l.overlaps(cmd, off) }) {
		return
	}
	c := m.conns[rapid.IntRange(0, len(m.conns)-1).Draw(m.rt, "conn")]
	if !c.WindowOpen() {
		return
	}
	task, err := c.Start(cmd)
	if task != nil {
		m.live = append(m.live, &recoveringTask{modelTask{task, off}, c})
	}
	if err != nil {
		m.lost(c, err)
	}
}

// overlaps says whether two commands at once would leave the result open.
func (m *modelTask) overlaps(cmd initiator.Command, off int) bool {
	n := max(len(cmd.Out), cmd.InLen)
	return off < m.off+m.length() && m.off < off+n && (len(cmd.Out) > 0 || len(m.Command.Out) > 0)
}

// pump sends the data that were asked for and takes what has come.
func (m *recoveringRun) pump() (some bool) {
	for _, l := range slices.Clone(m.live) {
		for len(l.R2Ts) > 0 {
			if err := l.conn.SendData(l.Task); err != nil {
				m.lost(l.conn, err)
				return true
			}
			some = true
		}
	}
	for _, c := range slices.Clone(m.conns) {
		for c.Transport().(*severed).buffered() {
			some = true
			if _, err := c.Step(0); err != nil {
				m.lost(c, err)
				return true
			}
		}
	}
	return some
}

// describe says what a run waits for.
func (m *recoveringRun) describe() string {
	s := fmt.Sprintf("commands do not end; CmdSN %d, window %d to %d", m.conns[0].CmdSN, m.conns[0].ExpCmdSN, m.conns[0].MaxCmdSN)
	for _, l := range m.live {
		s += fmt.Sprintf("\ntask %#x CmdSN %d on CID %d, done %t, out %d, in %d, held R2Ts %d", l.ITT, l.CmdSN, l.conn.CID, l.Done, len(l.Command.Out), l.Command.InLen, len(l.R2Ts))
	}
	for _, c := range m.conns {
		s += fmt.Sprintf("\nconnection %d, %d pings", c.CID, c.Pings)
	}
	return s
}

// finish waits for one command.
func (m *recoveringRun) finish(i int) {
	l := m.live[i]
	for late := time.Now().Add(patience); !l.Done; {
		if m.pump() || l.Done {
			continue
		}
		if time.Now().After(late) {
			m.fail(m.describe())
		}
		for _, c := range slices.Clone(m.conns) {
			if _, err := c.Step(500 * time.Microsecond); err != nil && !errors.Is(err, initiator.ErrTimeout) {
				m.lost(c, err)
				break
			}
		}
	}
	m.live = slices.Delete(m.live, i, i+1)
	(&modelRun{rt: m.rt, image: m.image}).judge(&l.modelTask)
}

// end logs out.
func (m *recoveringRun) end() {
	for len(m.live) > 0 {
		m.finish(0)
	}
	c := m.conns[0]
	w := c.Transport().(*severed)
	w.out, w.in = 1<<40, 1<<40
	if code, err := c.Logout(0); err != nil || code != 0 {
		m.rt.Fatalf("logout: response %d, %v", code, err)
	}
}

// However often and wherever connections break off, the tasks go on on others, and do
// what a byte slice does: every command ends once, with its status and its data.
func TestReassignmentMatchesModel(t *testing.T) {
	t.Parallel()
	cuts := 0
	rapid.Check(t, func(rt *rapid.T) {
		store, err := memstore.New(memstore.Config{Size: imageSize, Async: rapid.Bool().Draw(rt, "async")})
		if err != nil {
			rt.Fatal(err)
		}
		config := target.Config{Threads: 2, Buffers: rapid.SampledFrom([]int{512 << 10, 4 << 20}).Draw(rt, "buffers"), NoRing: true}
		config.Limits.Recovery, config.Limits.MaxConnections = 2, rapid.IntRange(1, 3).Draw(rt, "connections")
		config.Limits.SessionMemory = rapid.SampledFrom([]int{512 << 10, 1 << 20, 16 << 20}).Draw(rt, "memory")
		s := newServed(t, scsi.LUConfig{Name: "v", Store: store, BlockSize: 512, Serial: "1"}, config)
		defer s.stop(t)
		m := &recoveringRun{rt: rt, server: s, image: make([]byte, imageSize)}
		m.dial = func() wire {
			if rapid.Bool().Draw(rt, "TCP") {
				c, err := net.Dial("tcp", s.addr)
				if err != nil {
					rt.Fatal(err)
				}
				return c.(*net.TCPConn)
			}
			return targettest.Dial(s.Server, 1, targettest.Wire{
				Piece:  rapid.SampledFrom([]int{0, 1500, 20000}).Draw(rt, "piece"),
				Window: rapid.SampledFrom([]int{0, 8000}).Draw(rt, "window"),
			})
		}
		m.open(config.Limits.MaxConnections)
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			switch kind := rapid.IntRange(0, 9).Draw(rt, "step"); {
			case kind < 6 || len(m.live) == 0:
				m.start()
			case kind < 8:
				m.pump()
			default:
				m.finish(rapid.IntRange(0, len(m.live)-1).Draw(rt, "which"))
			}
		}
		m.end()
		if !bytes.Equal(store.Bytes(), m.image) {
			rt.Fatal("the store holds other data than the model")
		}
		s.expectNothingHeld(t)
		cuts += m.cuts
	})
	if cuts == 0 && !t.Failed() {
		t.Error("nothing was severed: the test has tested nothing")
	}
}

// open logs the first connection in, which is severed later than that, and others.
func (m *recoveringRun) open(conns int) {
	w := &severed{wire: m.dial(), out: 1 << 40, in: 1 << 40}
	c := initiator.NewConn(w)
	keys := append(drawKeys(m.rt), initiator.Key{Name: "ErrorRecoveryLevel", Value: "2"}, initiator.Key{Name: "MaxConnections", Value: fmt.Sprint(conns)},
		initiator.Key{Name: "DefaultTime2Wait", Value: "0"}, initiator.Key{Name: "DefaultTime2Retain", Value: "20"})
	if err := c.Login(initiator.Options{Target: testTarget, Keys: keys}); err != nil {
		m.rt.Fatal(err)
	}
	if err := c.Ready(0); err != nil {
		m.rt.Fatal(err)
	}
	w.out, w.in = rapid.IntRange(0, 200_000).Draw(m.rt, "first out"), rapid.IntRange(0, 200_000).Draw(m.rt, "first in")
	m.conns = append(m.conns, c)
	for len(m.conns) < conns {
		if n := m.join(c, m.freeCID()); n != nil {
			m.conns = append(m.conns, n)
		}
	}
}
