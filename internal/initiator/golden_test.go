package initiator

import (
	"bytes"
	"encoding/hex"
	"io"
	"strings"
	"testing"
)

// recorder keeps what is sent and never answers.
type recorder struct{ bytes.Buffer }

func (*recorder) Read([]byte) (int, error) { return 0, io.EOF }

// goldens are requests as their bytes were written out by hand from the layouts of RFC
// 7143 sections 11.3 to 11.16: one line for each sixteen bytes of a header, and more for
// what follows it. CmdSN is 10 and ExpStatSN is 100, which is 64 in hexadecimal.
var goldens = []struct {
	name   string
	params func(p *Params)
	send   func(c *Conn)
	want   string
}{
	{"read", nil, func(c *Conn) {
		_, _ = c.Start(Command{CDB: []byte{0x28, 0, 0, 0, 0, 7, 0, 0, 1, 0}, LUN: 5, InLen: 512, Attr: AttrSimple})
	}, `
		01 c1 00 00 00 00 00 00 00 05 00 00 00 00 00 00
		00 00 00 01 00 00 02 00 00 00 00 0a 00 00 00 64
		28 00 00 00 00 07 00 00 01 00 00 00 00 00 00 00`},
	{"write with immediate and unsolicited data", func(p *Params) { p.InitialR2T, p.TargetMaxRecv = false, 4 }, func(c *Conn) {
		_, _ = c.Start(Command{CDB: []byte{0x2a, 0, 0, 0, 0, 7, 0, 0, 1, 0}, LUN: 0x123, Out: []byte("abcdefghij"), Attr: AttrOrdered})
	}, `
		01 22 00 00 00 00 00 04 41 23 00 00 00 00 00 00
		00 00 00 01 00 00 00 0a 00 00 00 0a 00 00 00 64
		2a 00 00 00 00 07 00 00 01 00 00 00 00 00 00 00
		61 62 63 64

		05 00 00 00 00 00 00 04 00 00 00 00 00 00 00 00
		00 00 00 01 ff ff ff ff 00 00 00 00 00 00 00 64
		00 00 00 00 00 00 00 00 00 00 00 04 00 00 00 00
		65 66 67 68

		05 80 00 00 00 00 00 02 00 00 00 00 00 00 00 00
		00 00 00 01 ff ff ff ff 00 00 00 00 00 00 00 64
		00 00 00 00 00 00 00 01 00 00 00 08 00 00 00 00
		69 6a 00 00`},
	{"bidirectional command with an extended CDB", func(p *Params) { p.ImmediateData = false }, func(c *Conn) {
		_, _ = c.Start(Command{CDB: append([]byte{0x7f, 15: 0xee}, 0xe1, 0xe2), Out: make([]byte, 512), InLen: 0x300, Attr: AttrHeadOfQueue, Immediate: true})
	}, `
		41 e3 00 00 04 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 01 00 00 02 00 00 00 00 0a 00 00 00 64
		7f 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ee
		00 03 01 00 e1 e2 00 00
		00 05 02 00 00 00 03 00`},
	{"ABORT TASK", nil, func(c *Conn) {
		_ = c.Ask(TaskRequest{Function: AbortTask, LUN: 2, Referenced: &Task{ITT: 0x55, CmdSN: 9}}.PDU(), true)
	}, `
		42 81 00 00 00 00 00 00 00 02 00 00 00 00 00 00
		00 00 00 01 00 00 00 55 00 00 00 0a 00 00 00 64
		00 00 00 09 00 00 00 00 00 00 00 00 00 00 00 00`},
	{"TASK REASSIGN", nil, func(c *Conn) {
		_ = c.Ask(TaskRequest{Function: TaskReassign, Referenced: &Task{ITT: 0x55, CmdSN: 9}, ExpDataSN: 3}.PDU(), true)
	}, `
		42 88 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 01 00 00 00 55 00 00 00 0a 00 00 00 64
		00 00 00 00 00 00 00 03 00 00 00 00 00 00 00 00`},
	{"LOGICAL UNIT RESET in its turn", nil, func(c *Conn) {
		_ = c.Ask(TaskRequest{Function: LogicalUnitReset, LUN: 2, Queued: true}.PDU(), false)
	}, `
		02 85 00 00 00 00 00 00 00 02 00 00 00 00 00 00
		00 00 00 01 ff ff ff ff 00 00 00 0a 00 00 00 64
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`},
	{"ping", nil, func(c *Conn) { _ = c.Ping([]byte("ping!")) }, `
		40 80 00 00 00 00 00 05 00 00 00 00 00 00 00 00
		00 00 00 01 ff ff ff ff 00 00 00 0a 00 00 00 64
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		70 69 6e 67 21 00 00 00`},
	{"text", nil, func(c *Conn) { _, _ = c.Text(Keys{{"A", "b"}}) }, `
		44 80 00 00 00 00 00 04 00 00 00 00 00 00 00 00
		00 00 00 01 ff ff ff ff 00 00 00 0a 00 00 00 64
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		41 3d 62 00`},
	{"logout of another connection", nil, func(c *Conn) { _, _, _, _ = c.LogoutOf(2, 0x0102) }, `
		46 82 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 01 01 02 00 00 00 00 00 0a 00 00 00 64
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`},
	{"Data SNACK", nil, func(c *Conn) { _ = c.SNACK(SNACKData, 0x55, NoTag, 3, 2) }, `
		10 80 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 55 ff ff ff ff 00 00 00 00 00 00 00 64
		00 00 00 00 00 00 00 00 00 00 00 03 00 00 00 02`},
	// RFC 7143 appendix A.4 has the digest of these data; that of the header was computed
	// bit by bit from the polynomial.
	{"ping with digests", func(p *Params) { p.HeaderDigest, p.DataDigest = true, true }, func(c *Conn) { _ = c.Ping(make([]byte, 32)) }, `
		40 80 00 00 00 00 00 20 00 00 00 00 00 00 00 00
		00 00 00 01 ff ff ff ff 00 00 00 0a 00 00 00 64
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		ae e5 54 f5
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
		aa 36 91 8a`},
}

// TestRequestsOnTheWire: the bytes of requests are those of the RFC.
func TestRequestsOnTheWire(t *testing.T) {
	for _, golden := range goldens {
		t.Run(golden.name, func(t *testing.T) {
			rw, p := &recorder{}, defaultParams()
			if golden.params != nil {
				golden.params(&p)
			}
			golden.send(NewEstablished(rw, p, 10, 100))
			expectBytes(t, rw.Bytes(), golden.want)
		})
	}
}

func expectBytes(t *testing.T, found []byte, want string) {
	t.Helper()
	expected, err := hex.DecodeString(strings.Join(strings.Fields(want), ""))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(found, expected) {
		t.Errorf("found\n%s\nexpected\n%s", hex.Dump(found), hex.Dump(expected))
	}
}

// TestLoginOnTheWire: the first request of a login has the version, stages, ISID, TSIH
// and CID where RFC 7143 section 11.12 puts them.
func TestLoginOnTheWire(t *testing.T) {
	rw := &recorder{}
	c := NewConn(rw)
	_ = c.Login(Options{Initiator: "iqn.a", Target: "iqn.b", ISID: [6]byte{0x80, 1, 2, 3, 4, 5}, CID: 0x0607})
	text := "InitiatorName=iqn.a\x00SessionType=Normal\x00TargetName=iqn.b\x00AuthMethod=None\x00"
	header := `
		43 81 00 00 00 00 00 LENGTH 80 01 02 03 04 05 00 00
		00 00 00 01 06 07 00 00 00 00 00 01 00 00 00 00
		00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00`
	header = strings.Replace(header, "LENGTH", hex.EncodeToString([]byte{byte(len(text))}), 1)
	padded := append([]byte(text), make([]byte, padding(len(text)))...)
	expectBytes(t, rw.Bytes(), header+hex.EncodeToString(padded))
}
