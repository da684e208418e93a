package targettest

import (
	"bytes"
	"errors"
	"testing"

	"lunar/internal/initiator"
)

func testSense(t *testing.T, s Subject) {
	c := s.login(t, 1)
	noLUN := c.reading(0, s.BlockSize)
	noLUN.LUN = NoLUN
	c.expectSense(c.do(noLUN), 5, 0x25)
	c.expectSense(c.do(initiator.Command{CDB: read16(1<<40, 1), InLen: s.BlockSize}), 5, 0x21)
	c.expectSense(c.do(initiator.Command{CDB: write16(1<<40, 512), Out: pattern(512*s.BlockSize, 1)}), 5, 0x21)
	c.expectSense(c.do(initiator.Command{CDB: []byte{0xff, 15: 0}}), 5, 0x20)
	c.alive()
}

// testTaskAttributes: every attribute but ACA, which needs an ACA condition, is served.
func testTaskAttributes(t *testing.T, s Subject) {
	c := s.login(t, 1)
	var tasks []*initiator.Task
	for i, attr := range []byte{initiator.AttrUntagged, initiator.AttrSimple, initiator.AttrOrdered, initiator.AttrHeadOfQueue} {
		cmd := c.writing(i<<16, pattern(1<<16, i))
		cmd.Attr = attr
		tasks = append(tasks, c.start(cmd))
	}
	for _, task := range tasks {
		c.good(c.wait(task))
	}
	for i := range tasks {
		c.expect(i<<16, pattern(1<<16, i))
	}
}

// testImmediateCommands: commands outside the window do not use it up.
func testImmediateCommands(t *testing.T, s Subject) {
	c := s.login(t, 1)
	sn := c.CmdSN
	for _, cmd := range []initiator.Command{{CDB: make([]byte, 6)}, c.writing(0, pattern(8192, 2)), c.reading(0, 8192)} {
		cmd.Immediate = true
		c.good(c.do(cmd))
	}
	if c.CmdSN != sn || c.ExpCmdSN != sn {
		t.Fatalf("CmdSN %d, ExpCmdSN %d after immediate commands, expected %d", c.CmdSN, c.ExpCmdSN, sn)
	}
}

// testWindow fills the window, and looks at what happens to a command beyond.
func testWindow(t *testing.T, s Subject) {
	c := s.login(t, 1, key("InitialR2T", "Yes"), key("ImmediateData", "No"))
	var tasks []*initiator.Task
	for c.WindowOpen() {
		cmd := c.writing(0, pattern(s.BlockSize, 1))
		cmd.HoldData = true
		tasks = append(tasks, c.start(cmd))
	}
	if s.Assisted == nil || s.Assisted.Reads >= len(tasks) {
		for _, task := range tasks {
			c.awaitR2Ts(task, 1)
		}
	}
	c.answers(c.ping(nil))
	if c.WindowOpen() {
		t.Fatal("the window opened although no command has ended")
	}
	beyond := initiator.NewPDU(initiator.OpSCSICommand, initiator.FlagFinal|initiator.AttrSimple, nil)
	beyond.SetU32(initiator.AtITT, 0xdead)
	beyond.SetU32(initiator.AtCmdSN, c.CmdSN)
	if err := c.Send(beyond); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping([]byte("ignored silently")); err != nil { // Step would not know the tag of an answer
		t.Fatal(err)
	}
	for _, task := range tasks {
		c.letGo(task)
	}
	for _, task := range tasks {
		c.good(c.wait(task))
	}
	c.alive()
}

func testNOP(t *testing.T, s Subject) {
	c := s.login(t, 1)
	for _, n := range []int{0, 1, 3, 4, 1000, 8192} {
		sent := pattern(n, n)
		answer := c.answers(c.ping(sent))[0]
		if s.Assisted != nil {
			n = min(n, s.Assisted.Control)
		}
		if answer.Opcode() != initiator.OpNOPIn || !bytes.Equal(answer.Data, sent[:min(n, c.Params.MaxRecvDataSegmentLength)]) {
			t.Errorf("%d bytes: opcode %#02x with %d bytes", len(sent), answer.Opcode(), len(answer.Data))
		}
	}
}

func testText(t *testing.T, s Subject) {
	c := s.login(t, 1)
	targets, err := c.SendTargets("")
	if err != nil || len(targets) != 1 {
		t.Fatalf("SendTargets= found %v, %v, expected the own target", targets, err)
	}
	answer, err := c.Text(initiator.Keys{key("X-lunar-unknown", "1"), key("MaxBurstLength", "512")})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"X-lunar-unknown": "NotUnderstood", "MaxBurstLength": "Reject"} {
		if got, _ := answer.Get(name); got != want {
			t.Errorf("%s=%s, expected %s", name, got, want)
		}
	}
	c.alive()
}

// testReject: what the target cannot act on is rejected, and the session goes
// on.
func testReject(t *testing.T, s Subject) {
	c := s.login(t, 1)
	snack := initiator.NewPDU(initiator.OpSNACK, initiator.FlagFinal, nil)
	unknown := initiator.NewPDU(0x1c, initiator.FlagFinal, nil)
	for i, p := range []*initiator.PDU{snack, unknown} {
		p.SetU32(initiator.AtITT, 0x1234)
		p.SetU32(initiator.AtCmdSN, c.CmdSN)
		if err := c.Send(p); err != nil {
			t.Fatal(err)
		}
		c.alive()
		if len(c.Rejects) != i+1 {
			t.Fatalf("%d rejects after opcode %#02x, expected %d", len(c.Rejects), p.Opcode(), i+1)
		}
	}
}

// held starts a write that waits for its data. They are asked for, unless earlier ones
// take up what the target may fetch at a time.
func (s *session) held(off, n int) *initiator.Task {
	s.t.Helper()
	cmd := s.writing(off, pattern(n, 9))
	cmd.HoldData = true
	task := s.start(cmd)
	if s.holds++; s.assisted == nil || s.holds <= s.assisted.Reads {
		s.awaitR2Ts(task, 1)
	} else {
		s.answers(s.ping(nil))
	}
	return task
}

// member is a task of a session.
type member struct {
	of   *session
	task *initiator.Task
}

// manage runs a task management function that ends tasks. What they hold back is sent
// when the target knows of the function: over TCP it was on its way and belongs to
// nothing any more. An adapter that is fetching it cannot be stopped, so in
// iSER-assisted mode the answer waits for it.
func (s *session) manage(r initiator.TaskRequest, want byte, ends ...member) {
	s.t.Helper()
	request := s.ask(r.PDU())
	answer := s.answers(request, s.ping(nil))[0]
	if answer != nil && s.assisted != nil && len(ends) > 0 {
		s.t.Fatalf("task management function %d was answered while data were fetched for a task that it ends", r.Function)
	}
	for _, m := range ends {
		m.of.letGo(m.task)
	}
	if answer == nil {
		answer = s.answers(request)[0]
	}
	if answer.Opcode() != initiator.OpTaskResponse || answer.BHS[2] != want {
		s.t.Fatalf("task management function %d: opcode %#02x, response %d, expected %d", r.Function, answer.Opcode(), answer.BHS[2], want)
	}
}

// testAbortTask ends one of two writes in the middle of their data.
func testAbortTask(t *testing.T, s Subject) {
	c := s.login(t, 1)
	c.write(0, pattern(2<<20, 1))
	aborted, other := c.held(0, 1<<20), c.held(1<<20, 1<<20)
	c.manage(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: aborted}, 0, member{c, aborted})
	c.Forget(aborted)
	c.manage(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: aborted}, 1)
	c.letGo(other)
	c.good(c.wait(other))
	c.expect(1<<20, other.Command.Out)
}

// testResets: the functions that end the tasks of others, seen from two
// initiators.
func testResets(t *testing.T, s Subject) {
	for _, f := range []struct {
		function  byte
		self      bool // the asking session hears of it
		others    bool // the other's tasks end
		attention byte // ASC
	}{
		{initiator.AbortTaskSet, false, false, 0},
		{initiator.ClearTaskSet, false, true, 0x2f},
		{initiator.LogicalUnitReset, true, true, 0x29},
		{initiator.TargetWarmReset, true, true, 0x29},
	} {
		a, b := s.login(t, 1), s.login(t, 2)
		mine, theirs := a.held(0, 1<<20), b.held(1<<20, 128<<10)
		ends := []member{{a, mine}}
		if f.others {
			ends = append(ends, member{b, theirs})
		}
		a.manage(initiator.TaskRequest{Function: f.function}, 0, ends...)
		a.Forget(mine)
		if f.self {
			a.expectSense(a.do(initiator.Command{CDB: make([]byte, 6)}), 6, f.attention)
		}
		a.alive()
		if f.others {
			b.expectSense(b.do(initiator.Command{CDB: make([]byte, 6)}), 6, f.attention)
			b.Forget(theirs)
		} else {
			b.letGo(theirs)
			b.good(b.wait(theirs))
		}
		b.alive()
	}
}

func testLogoutWithRunningCommands(t *testing.T, s Subject) {
	a, b := s.login(t, 1), s.login(t, 2)
	held := a.held(0, 1<<20)
	a.start(a.reading(0, 2<<20))
	request := a.ask(initiator.NewPDU(initiator.OpLogout, initiator.FlagFinal, nil))
	if s.Assisted != nil {
		a.letGo(held)
	}
	if answer := a.answers(request)[0]; answer.Opcode() != initiator.OpLogoutResponse || answer.BHS[2] != 0 {
		t.Fatalf("logout: opcode %#02x, response %d", answer.Opcode(), answer.BHS[2])
	}
	a.expectEnd()
	b.alive()
}

// testCutConnection drops a connection in the middle of everything.
func testCutConnection(t *testing.T, s Subject) {
	a, b := s.login(t, 1), s.login(t, 2)
	a.held(0, 1<<20)
	for range 4 {
		a.start(a.reading(0, 2<<20))
	}
	if err := a.Close(); err != nil && !errors.Is(err, initiator.ErrClosed) {
		t.Fatal(err)
	}
	b.alive()
	s.login(t, 1).alive() // the same initiator port comes back
}
