package initiator

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestWriteSequences holds the golden conversations of a write: which PDUs carry
// the data under each combination of negotiated keys.
func TestWriteSequences(t *testing.T) {
	tests := []struct {
		name               string
		r2t, immediate     bool
		first, burst, recv int
		segment, length    int
		want               string
	}{
		{"nothing unsolicited", true, false, 512, 1024, 512, 0, 2048,
			"command F edtl=2048 data=0; " +
				"out ttt=1 sn=0 at=0 data=512; out F ttt=1 sn=1 at=512 data=512; " +
				"out ttt=2 sn=0 at=1024 data=512; out F ttt=2 sn=1 at=1536 data=512"},
		{"immediate", true, true, 1024, 1024, 512, 0, 1024,
			"command F edtl=1024 data=512; out F ttt=1 sn=0 at=512 data=512"},
		{"immediate bounded by first burst", true, true, 512, 4096, 8192, 0, 1024,
			"command F edtl=1024 data=512; out F ttt=1 sn=0 at=512 data=512"},
		{"immediate and unsolicited", false, true, 1536, 4096, 1024, 0, 4096,
			"command edtl=4096 data=1024; out F ttt=ffffffff sn=0 at=1024 data=512; " +
				"out ttt=1 sn=0 at=1536 data=1024; out ttt=1 sn=1 at=2560 data=1024; out F ttt=1 sn=2 at=3584 data=512"},
		{"unsolicited alone", false, false, 1024, 4096, 512, 0, 1024,
			"command edtl=1024 data=0; out ttt=ffffffff sn=0 at=0 data=512; out F ttt=ffffffff sn=1 at=512 data=512"},
		{"short segments", true, false, 512, 1024, 8192, 300, 1000,
			"command F edtl=1000 data=0; out ttt=1 sn=0 at=0 data=300; out ttt=1 sn=1 at=300 data=300; " +
				"out ttt=1 sn=2 at=600 data=300; out F ttt=1 sn=3 at=900 data=100"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := defaultParams()
			p.InitialR2T, p.ImmediateData = test.r2t, test.immediate
			p.FirstBurstLength, p.MaxBurstLength, p.TargetMaxRecv = test.first, test.burst, test.recv
			transcript := make(chan string, 1)
			received := make([]byte, test.length)
			c := converse(t, p, func(f *fake) {
				f.serveWrite(received, test.burst)
				transcript <- f.transcript()
			})
			data := make([]byte, test.length)
			for i := range data {
				data[i] = byte(i * 7)
			}
			r, err := c.Do(Command{CDB: []byte{0x2a, 9: 0}, Out: data, Segment: test.segment})
			if err != nil || r.Status != StatusGood {
				t.Fatal(r, err)
			}
			if got := <-transcript; got != test.want {
				t.Errorf("sent\n%s\nexpected\n%s", got, test.want)
			}
			if !bytes.Equal(received, data) {
				t.Error("data arrived changed")
			}
		})
	}
}

// serveWrite takes one write, asking for what does not come by itself.
func (f *fake) serveWrite(into []byte, burst int) {
	command := f.read()
	have := copy(into, command.Data)
	f.expCmdSN++
	unsolicited := !command.Has(FlagFinal)
	ttt := uint32(0)
	for have < len(into) || unsolicited {
		if !unsolicited {
			ttt++
			f.send(f.r2t(command, ttt, ttt-1, have, min(burst, len(into)-have)))
		}
		for last := false; !last; {
			out := f.read()
			have += copy(into[out.U32(AtOffset):], out.Data)
			last = out.Has(FlagFinal)
		}
		unsolicited = false
	}
	f.send(f.response(command, StatusGood, ttt))
}

func TestReadAndSense(t *testing.T) {
	data := []byte("0123456789abcdef")
	c := converse(t, defaultParams(), func(f *fake) {
		request := f.read()
		f.expCmdSN++
		f.send(f.dataIn(request, 0, 0, 0, data[:8]), f.dataIn(request, 1, 8, FlagFinal|FlagStatus, data[8:]))
		request = f.read()
		f.expCmdSN++
		p := f.response(request, StatusCheckCondition, 0)
		p.Data = fixedSense(5, 0x20, 0)
		p.BHS[1] |= FlagUnderflow
		p.SetU32(AtResidual, 16)
		f.send(p)
	})
	r, err := c.Command([]byte{0x28, 9: 0}, 0, nil, len(data))
	if err != nil || !bytes.Equal(r.In, data) {
		t.Fatal(r, err)
	}
	r, err = c.Command([]byte{0xff, 5: 0}, 0, nil, 16)
	if err != nil {
		t.Fatal(err)
	}
	if key, asc, ascq := r.SenseKey(); r.Status != StatusCheckCondition || key != 5 || asc != 0x20 || ascq != 0 {
		t.Errorf("status %#x, sense %x", r.Status, r.Sense)
	}
}

// TestTaskViolations sends one wrong thing for a read of 1024 or a write of
// 1024 bytes, with bursts of 512 and segments of 512 bytes.
func TestTaskViolations(t *testing.T) {
	block := make([]byte, 512)
	tests := []struct {
		name    string
		section string
		read    bool
		script  func(f *fake, request *PDU)
	}{
		{"Data-In for a write", "11.7", false, func(f *fake, r *PDU) { f.send(f.dataIn(r, 0, 0, FlagFinal, block)) }},
		{"DataSN skips", "11.7.5", true, func(f *fake, r *PDU) { f.send(f.dataIn(r, 1, 0, FlagFinal, block)) }},
		{"offset skips", "13.18", true, func(f *fake, r *PDU) { f.send(f.dataIn(r, 0, 512, FlagFinal, block)) }},
		{"too many bytes", "11.7.6", true, func(f *fake, r *PDU) { f.send(f.dataIn(r, 0, 1000, FlagFinal, block)) }},
		{"burst too long", "13.13", true, func(f *fake, r *PDU) {
			f.send(f.dataIn(r, 0, 0, 0, block), f.dataIn(r, 1, 512, FlagFinal, block))
		}},
		{"A bit at level 0", "11.7.2", true, func(f *fake, r *PDU) { f.send(f.dataIn(r, 0, 0, FlagFinal|FlagAck, block)) }},
		{"TTT without A", "11.7.4", true, func(f *fake, r *PDU) {
			p := f.dataIn(r, 0, 0, FlagFinal, block)
			p.SetU32(AtTTT, 5)
			f.send(p)
		}},
		{"S without all data", "11.4.5.1", true, func(f *fake, r *PDU) {
			f.send(f.dataIn(r, 0, 0, FlagFinal|FlagStatus, block))
		}},
		{"bad status in Data-In", "11.7.3", true, func(f *fake, r *PDU) {
			p := f.dataIn(r, 0, 0, FlagFinal|FlagStatus, block)
			p.BHS[3] = StatusCheckCondition
			f.send(p)
		}},
		{"underflow that is none", "11.4.5.1", true, func(f *fake, r *PDU) {
			p := f.response(r, StatusGood, 0)
			p.BHS[1] |= FlagUnderflow
			p.SetU32(AtResidual, 1000)
			f.send(p)
		}},
		{"residual flag without count", "11.4.5.1", true, func(f *fake, r *PDU) {
			p := f.response(r, StatusGood, 0)
			p.BHS[1] |= FlagOverflow
			f.send(p)
		}},
		{"ExpDataSN", "11.4.8", true, func(f *fake, r *PDU) {
			f.send(f.dataIn(r, 0, 0, FlagFinal, block), f.response(r, StatusGood, 2))
		}},
		{"last Data-In without F", "11.7.1", true, func(f *fake, r *PDU) {
			f.send(f.dataIn(r, 0, 0, 0, block), f.response(r, StatusGood, 1))
		}},
		{"unknown status", "11.4.2", true, func(f *fake, r *PDU) { f.send(f.response(r, 0x77, 0)) }},
		{"unknown task", "11.2.1.8", true, func(f *fake, r *PDU) {
			p := f.response(r, StatusGood, 0)
			p.SetU32(AtITT, 0x999)
			f.send(p)
		}},
		{"R2T for a read", "11.8", true, func(f *fake, r *PDU) { f.send(f.r2t(r, 1, 0, 0, 512)) }},
		{"R2TSN skips", "11.8.3", false, func(f *fake, r *PDU) { f.send(f.r2t(r, 1, 1, 0, 512)) }},
		{"R2T of nothing", "11.8.4", false, func(f *fake, r *PDU) { f.send(f.r2t(r, 1, 0, 0, 0)) }},
		{"R2T beyond MaxBurstLength", "11.8.4", false, func(f *fake, r *PDU) { f.send(f.r2t(r, 1, 0, 0, 1024)) }},
		{"R2T beyond the data", "11.8.4", false, func(f *fake, r *PDU) { f.send(f.r2t(r, 1, 0, 1000, 512)) }},
		{"R2T out of order", "13.19", false, func(f *fake, r *PDU) { f.send(f.r2t(r, 1, 0, 512, 512)) }},
		{"R2T of another LUN", "11.8", false, func(f *fake, r *PDU) {
			p := f.r2t(r, 1, 0, 0, 512)
			p.BHS[AtLUN+1] = 9
			f.send(p)
		}},
		{"too many R2Ts", "13.17", false, func(f *fake, r *PDU) {
			f.send(f.r2t(r, 1, 0, 0, 512), f.r2t(r, 2, 1, 512, 512))
		}},
		{"TTT reused", "11.8.5", false, func(f *fake, r *PDU) {
			f.send(f.r2t(r, 1, 0, 0, 512), f.r2t(r, 1, 1, 512, 512))
		}},
		{"GOOD without asking for the data", "11.4.5.1", false, func(f *fake, r *PDU) {
			f.send(f.response(r, StatusGood, 0))
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := defaultParams()
			p.MaxBurstLength, p.ImmediateData = 512, false
			c := converse(t, p, func(f *fake) {
				request := f.read()
				f.expCmdSN++
				test.script(f, request)
			})
			command := Command{CDB: []byte{0x28, 9: 0}, HoldData: true}
			if test.read {
				command.InLen = 1024
			} else {
				command.Out = make([]byte, 1024)
			}
			_, err := c.Do(command)
			wantViolation(t, err, test.section)
		})
	}
}

func TestWindow(t *testing.T) {
	c := converse(t, defaultParams(), func(f *fake) {
		first := f.read()
		f.expCmdSN, f.maxCmdSN = 11, 11
		f.send(f.response(first, StatusGood, 0))
		second := f.read()
		f.expCmdSN++
		f.send(f.number(NewPDU(OpAsync, FlagFinal, nil)))
		f.send(f.response(second, StatusGood, 0))
	})
	turCDB := make([]byte, 6)
	if _, err := c.Command(turCDB, 0, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Start(Command{CDB: turCDB}); err != nil {
		t.Fatalf("CmdSN 11 with MaxCmdSN 11: %v", err)
	}
	if _, err := c.Start(Command{CDB: turCDB}); !errors.Is(err, ErrWindowClosed) {
		t.Errorf("CmdSN 12 with MaxCmdSN 11: got %v, expected ErrWindowClosed", err)
	}
}

func TestHeldData(t *testing.T) {
	p := defaultParams()
	p.ImmediateData = false
	c := converse(t, p, func(f *fake) { f.serveWrite(make([]byte, 1024), 512) })
	task, err := c.Start(Command{CDB: []byte{0x2a, 9: 0}, Out: make([]byte, 1024), HoldData: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.Step(0); err != nil {
			t.Fatal(err)
		}
		if len(task.R2Ts) != 1 || task.Done {
			t.Fatalf("%d R2Ts held, done %t", len(task.R2Ts), task.Done)
		}
		if err := c.SendData(task); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := c.Wait(task); err != nil || r.Status != StatusGood {
		t.Error(r, err)
	}
	if err := c.SendData(task); err == nil {
		t.Error("SendData without R2T succeeded")
	}
}

func TestTimeoutKeepsPartOfPDU(t *testing.T) {
	resume := make(chan struct{})
	c := converse(t, defaultParams(), func(f *fake) {
		p := NewPDU(OpNOPIn, FlagFinal, nil)
		p.SetU32(AtITT, NoTag)
		p.SetU32(AtTTT, 1)
		f.number(p)
		f.nc.Write(p.BHS[:20])
		<-resume
		f.nc.Write(p.BHS[20:])
	})
	if _, err := c.Receive(20 * time.Millisecond); !errors.Is(err, ErrTimeout) {
		t.Fatalf("got %v, expected a timeout", err)
	}
	close(resume)
	p, err := c.Receive(0)
	if err != nil || p.Opcode() != OpNOPIn {
		t.Error(p, err)
	}
	if _, err := c.Receive(0); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, expected ErrClosed", err)
	}
}

func TestExtendedCDB(t *testing.T) {
	var ahs []byte
	c := converse(t, defaultParams(), func(f *fake) {
		request := f.read()
		ahs = request.AHS
		f.expCmdSN++
		f.send(f.response(request, StatusGood, 0))
	})
	cdb := make([]byte, 32)
	cdb[16] = 0xaa
	if _, err := c.Command(cdb, 0, nil, 0); err != nil {
		t.Fatal(err)
	}
	if want := append([]byte{0, 17, 1, 0, 0xaa}, make([]byte, 15)...); !bytes.Equal(ahs, want) {
		t.Errorf("AHS %x, expected %x", ahs, want)
	}
}

// TestLUNWithoutForm: a number that has no form, such as a LUN in that form, is no command to
// another LUN.
func TestLUNWithoutForm(t *testing.T) {
	var c Conn // which is not asked for more
	for _, number := range []uint64{16384, 1 << 48} {
		if _, err := c.Start(Command{CDB: []byte{0: 0, 5: 0}, LUN: number}); err == nil || !strings.Contains(err.Error(), "expected a number of at most 16383") {
			t.Errorf("LUN %d: found %v", number, err)
		}
	}
}

func TestLUNForm(t *testing.T) {
	for number, want := range map[uint64][8]byte{0: {}, 255: {0, 255}, 256: {0x41, 0}, 16383: {0x7f, 0xff}} {
		if got := LUN(number); got != want {
			t.Errorf("LUN %d is %x, expected %x", number, got, want)
		}
	}
}
