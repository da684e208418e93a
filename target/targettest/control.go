package targettest

import (
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
	for _, task := range tasks {
		c.awaitR2Ts(task, 1)
	}
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
		if err := c.SendData(task); err != nil {
			t.Fatal(err)
		}
		c.good(c.wait(task))
	}
	c.alive()
}

func testNOP(t *testing.T, s Subject) {
	c := s.login(t, 1)
	for _, n := range []int{0, 1, 3, 4, 1000, 8192} {
		if err := c.Ping(pattern(n, n)); err != nil {
			t.Errorf("%d bytes: %v", n, err)
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

// held starts a write that waits for its data.
func (s *session) held(off, n int) *initiator.Task {
	s.t.Helper()
	cmd := s.writing(off, pattern(n, 9))
	cmd.HoldData = true
	task := s.start(cmd)
	s.awaitR2Ts(task, 1)
	return task
}

func (s *session) manage(r initiator.TaskRequest, want byte) {
	s.t.Helper()
	code, err := s.TaskManagement(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if code != want {
		s.t.Fatalf("task management function %d: response %d, expected %d", r.Function, code, want)
	}
}

// testAbortTask ends one of two writes in the middle of their data.
func testAbortTask(t *testing.T, s Subject) {
	c := s.login(t, 1)
	c.write(0, pattern(2<<20, 1))
	aborted, other := c.held(0, 1<<20), c.held(1<<20, 1<<20)
	c.manage(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: aborted}, 0)
	if err := c.SendData(aborted); err != nil { // it was on its way
		t.Fatal(err)
	}
	c.Forget(aborted)
	c.manage(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: aborted}, 1)
	other.Command.HoldData = false
	if err := c.SendData(other); err != nil {
		t.Fatal(err)
	}
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
		mine, theirs := a.held(0, 1<<20), b.held(1<<20, 1<<20)
		a.manage(initiator.TaskRequest{Function: f.function}, 0)
		a.Forget(mine)
		if f.self {
			a.expectSense(a.do(initiator.Command{CDB: make([]byte, 6)}), 6, f.attention)
		}
		a.alive()
		if f.others {
			b.expectSense(b.do(initiator.Command{CDB: make([]byte, 6)}), 6, f.attention)
			b.Forget(theirs)
		} else {
			theirs.Command.HoldData = false
			if err := b.SendData(theirs); err != nil {
				t.Fatal(err)
			}
			b.good(b.wait(theirs))
		}
		b.alive()
	}
}

func testLogoutWithRunningCommands(t *testing.T, s Subject) {
	a, b := s.login(t, 1), s.login(t, 2)
	a.held(0, 1<<20)
	a.start(a.reading(0, 2<<20))
	code, err := a.Logout(0)
	if err != nil || code != 0 {
		t.Fatalf("logout: response %d, %v", code, err)
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
