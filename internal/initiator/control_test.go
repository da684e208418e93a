package initiator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"testing"
)

func TestTaskManagement(t *testing.T) {
	var reference [2]uint32
	c := converse(t, defaultParams(), func(f *fake) {
		command := f.read()
		f.expCmdSN++
		request := f.read()
		reference = [2]uint32{request.TTT(), request.U32(32)}
		// The command ends before the function that came too late for it.
		f.send(f.response(command, StatusGood, 0))
		answer := f.answer(OpTaskResponse, FlagFinal, request, nil)
		answer.BHS[2] = 1
		f.send(answer)
	})
	task, err := c.Start(Command{CDB: make([]byte, 6)})
	if err != nil {
		t.Fatal(err)
	}
	code, err := c.TaskManagement(TaskRequest{Function: AbortTask, Referenced: task})
	if err != nil || code != 1 || !task.Done {
		t.Errorf("response %d, task done %t: %v", code, task.Done, err)
	}
	if reference != [2]uint32{task.ITT, task.CmdSN} {
		t.Errorf("referenced %v, expected tag %d and CmdSN %d", reference, task.ITT, task.CmdSN)
	}
	if c.CmdSN != 11 {
		t.Errorf("CmdSN %d after an immediate request, expected 11", c.CmdSN)
	}
}

func TestPing(t *testing.T) {
	for _, echo := range []string{"abc", "abd"} {
		c := converse(t, defaultParams(), func(f *fake) {
			request := f.read()
			p := f.answer(OpNOPIn, FlagFinal, request, []byte(echo))
			p.SetU32(AtTTT, NoTag)
			f.send(p)
		})
		err := c.Ping([]byte("abc"))
		if echo == "abc" && err != nil {
			t.Error(err)
		}
		if echo != "abc" {
			wantViolation(t, err, "11.19.2")
		}
	}
}

func TestTargetPingIsAnswered(t *testing.T) {
	answered := make(chan *PDU, 1)
	c := converse(t, defaultParams(), func(f *fake) {
		f.send(ping())
		answered <- f.read()
	})
	if _, err := c.Step(0); err != nil {
		t.Fatal(err)
	}
	p := <-answered
	if p.Opcode() != OpNOPOut || p.ITT() != NoTag || p.TTT() != 7 || c.Pings != 1 {
		t.Errorf("answer %x, %d pings counted", p.BHS, c.Pings)
	}
}

func TestSendTargets(t *testing.T) {
	c := converse(t, defaultParams(), func(f *fake) {
		request := f.read()
		p := f.answer(OpTextResponse, FlagContinue, request, []byte("TargetName=iqn.a\x00TargetAdd"))
		p.SetU32(AtTTT, 5)
		f.send(p)
		request = f.read()
		p = f.answer(OpTextResponse, FlagFinal, request, []byte("ress=1.2.3.4:3260,1\x00TargetAddress=[::1]:3260,2\x00TargetName=iqn.b\x00"))
		p.SetU32(AtTTT, NoTag)
		f.send(p)
	})
	targets, err := c.SendTargets("All")
	if want := "[{iqn.a [1.2.3.4:3260,1 [::1]:3260,2]} {iqn.b []}]"; err != nil || fmt.Sprint(targets) != want {
		t.Errorf("%v %v, expected %s", targets, err, want)
	}
}

func TestRejectedRequest(t *testing.T) {
	c := converse(t, defaultParams(), func(f *fake) {
		request := f.read()
		p := reject(5, 0)
		p.Data = request.BHS[:]
		f.send(p)
	})
	_, err := c.Logout(0)
	var rejected *Rejected
	if !errors.As(err, &rejected) || rejected.Reason != 5 || len(c.Rejects) != 1 {
		t.Errorf("got %v, expected a reject with reason 5", err)
	}
}

func TestReadyAndCapacity(t *testing.T) {
	c := converse(t, defaultParams(), func(f *fake) {
		attention := f.response(f.read(), StatusCheckCondition, 0)
		attention.Data = fixedSense(6, 0x29, 0)
		f.expCmdSN++
		f.send(attention)
		request := f.read()
		f.expCmdSN++
		f.send(f.response(request, StatusGood, 0))
		data := make([]byte, 32)
		binary.BigEndian.PutUint64(data, 99)
		binary.BigEndian.PutUint32(data[8:], 4096)
		request = f.read()
		f.expCmdSN++
		f.send(f.dataIn(request, 0, 0, FlagFinal|FlagStatus, data))
	})
	if err := c.Ready(0); err != nil {
		t.Fatal(err)
	}
	if size, blocks, err := c.Capacity(0); size != 4096 || blocks != 100 || err != nil {
		t.Error(size, blocks, err)
	}
}

func TestParseURL(t *testing.T) {
	tests := map[string]URL{
		"iscsi://127.0.0.1:3261/iqn.a:b/7": {"127.0.0.1:3261", "iqn.a:b", 7},
		"iscsi://host/iqn.a":               {"host:3260", "iqn.a", 0},
		"iscsi://[::1]/iqn.a/0":            {"[::1]:3260", "iqn.a", 0},
		"iscsi://[::1]:9/iqn.a/0":          {"[::1]:9", "iqn.a", 0},
	}
	for text, want := range tests {
		if got, err := ParseURL(text); err != nil || got != want {
			t.Errorf("%s: %+v %v, expected %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "http://a/b", "iscsi://", "iscsi://host", "iscsi:///iqn/1", "iscsi://host/iqn/99999", "iscsi://host/iqn/x"} {
		if got, err := ParseURL(text); err == nil {
			t.Errorf("%q was accepted as %+v", text, got)
		}
	}
}

// TestDetach moves a TCP connection out of and back into a Conn.
func TestDetach(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mine, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	c := NewConn(mine)
	fd, err := c.Detach()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Attach(fd); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.loginPhase = false
	if _, err := theirs.Write(ping().BHS[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Receive(0); err != nil {
		t.Error(err)
	}
	pipe, other := net.Pipe()
	defer pipe.Close()
	defer other.Close()
	if _, err := NewConn(pipe).Detach(); err == nil {
		t.Error("a pipe was detached")
	}
}
