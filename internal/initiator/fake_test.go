package initiator

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a target that does what its script says, over net.Pipe. Its numbering
// is right unless the script changes it.
type fake struct {
	t                          *testing.T
	nc                         net.Conn
	statSN, expCmdSN, maxCmdSN uint32
	seen                       []string // a line per PDU received
}

// converse runs a script against a Conn in full feature phase.
func converse(t *testing.T, params Params, script func(f *fake)) *Conn {
	t.Helper()
	c := NewEstablished(connect(t, script).rw, params, 10, 100)
	return c
}

// connect runs a script against a Conn before login.
func connect(t *testing.T, script func(f *fake)) *Conn {
	t.Helper()
	mine, theirs := net.Pipe()
	f := &fake{t: t, nc: theirs, statSN: 100, expCmdSN: 10, maxCmdSN: 20}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		script(f)
	}()
	c := NewConn(mine)
	t.Cleanup(func() {
		c.Close()
		<-done
	})
	return c
}

// read returns the next PDU of the initiator, nil when it hung up.
func (f *fake) read() *PDU {
	p := &PDU{}
	if _, err := io.ReadFull(f.nc, p.BHS[:]); err != nil {
		return nil
	}
	rest := make([]byte, p.ahsLength()+p.dataLength()+padding(p.dataLength()))
	if _, err := io.ReadFull(f.nc, rest); err != nil {
		return nil
	}
	p.AHS, p.Data = rest[:p.ahsLength()], rest[p.ahsLength():][:p.dataLength()]
	f.seen = append(f.seen, describe(p))
	return p
}

// describe is the golden form of an initiator's PDU.
func describe(p *PDU) string {
	final := ""
	if p.Has(FlagFinal) {
		final = " F"
	}
	switch p.Opcode() {
	case OpSCSICommand:
		return fmt.Sprintf("command%s edtl=%d data=%d", final, p.TTT(), len(p.Data))
	case OpDataOut:
		return fmt.Sprintf("out%s ttt=%x sn=%d at=%d data=%d", final, p.TTT(), p.U32(AtDataSN), p.U32(AtOffset), len(p.Data))
	}
	return fmt.Sprintf("%02x%s data=%d", p.Opcode(), final, len(p.Data))
}

func (f *fake) transcript() string { return strings.Join(f.seen, "; ") }

// answer starts a PDU for the task of a request.
func (f *fake) answer(opcode, flags byte, request *PDU, data []byte) *PDU {
	p := NewPDU(opcode, flags, data)
	copy(p.BHS[AtITT:AtTTT], request.BHS[AtITT:AtTTT])
	return p
}

func (f *fake) dataIn(request *PDU, sn uint32, offset int, flags byte, data []byte) *PDU {
	p := f.answer(OpDataIn, flags, request, data)
	p.SetU32(AtTTT, NoTag)
	p.SetU32(AtDataSN, sn)
	p.SetU32(AtOffset, uint32(offset))
	return p
}

func (f *fake) r2t(request *PDU, ttt, sn uint32, offset, length int) *PDU {
	p := f.answer(OpR2T, FlagFinal, request, nil)
	copy(p.BHS[AtLUN:AtITT], request.BHS[AtLUN:AtITT])
	p.SetU32(AtTTT, ttt)
	p.SetU32(AtDataSN, sn)
	p.SetU32(AtOffset, uint32(offset))
	p.SetU32(AtLength, uint32(length))
	return p
}

func (f *fake) response(request *PDU, status byte, expDataSN uint32) *PDU {
	p := f.answer(OpSCSIResponse, FlagFinal, request, nil)
	p.BHS[3] = status
	p.SetU32(AtDataSN, expDataSN)
	return p
}

// number stamps the sequence numbers as a target must.
func (f *fake) number(p *PDU) *PDU {
	if p.Opcode() != OpDataIn || p.Has(FlagStatus) {
		p.SetU32(AtStatSN, f.statSN)
	}
	p.SetU32(AtExpCmdSN, f.expCmdSN)
	p.SetU32(AtMaxCmdSN, f.maxCmdSN)
	if advancesStatSN(p) {
		f.statSN++
	}
	return p
}

// send numbers and writes PDUs; after the Conn hung up it does nothing.
func (f *fake) send(pdus ...*PDU) {
	for _, p := range pdus {
		f.write(f.number(p))
	}
}

func (f *fake) write(p *PDU) {
	if !p.KeepLengths {
		p.setLengths()
	}
	b := append(append(p.BHS[:], p.AHS...), p.Data...)
	_, _ = f.nc.Write(append(b, make([]byte, padding(len(p.Data)))...))
}

// wantViolation fails the test unless err is a violation of that section.
func wantViolation(t *testing.T, err error, section string) {
	t.Helper()
	v, ok := err.(*Violation)
	if !ok || v.Section != section {
		t.Fatalf("got %v, expected a violation of section %s", err, section)
	}
}

func fixedSense(key, asc, ascq byte) []byte {
	sense := []byte{0x70, 0, key, 0, 0, 0, 0, 10, 0, 0, 0, 0, asc, ascq, 0, 0, 0, 0}
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(sense))), sense...)
}
