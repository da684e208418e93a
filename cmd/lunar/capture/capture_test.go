package capture

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"lunar/control"
)

// header is a BHS with an opcode and a length of data.
func header(opcode byte, data int) string {
	b := [48]byte{0: opcode, 1: 0x80, 5: byte(data >> 16), 6: byte(data >> 8), 7: byte(data), 19: 1}
	return hex.EncodeToString(b[:])
}

// written is a file with some PDUs of two connections.
func written(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := New(&file)
	if err != nil {
		t.Fatal(err)
	}
	w.Connection(&control.TraceConnection{CID: 1, Address: "[::ffff:192.0.2.7]:4000", Portal: "[::ffff:192.0.2.9]:3260"})
	w.Connection(&control.TraceConnection{CID: 2, Address: "[2001:db8::7]:4001", Portal: "[2001:db8::9]:3260"})
	at := time.Date(2026, 11, 25, 12, 0, 0, 123456789, time.UTC)
	for _, p := range []control.TracedPDU{
		{CID: 1, Direction: control.TraceReceived, BHS: header(0x01, 0)},
		{CID: 1, Direction: control.TraceSent, BHS: header(0x25, 70_000), DataLength: 70_000, MissingBefore: 2},
		{CID: 2, Direction: control.TraceReceived, BHS: header(0x01, 5), DataLength: 5},
		{CID: 1, Direction: control.TraceSent, BHS: header(0x21, 0)},
		{CID: 1, Direction: control.TraceReceived, BHS: header(0x01, 0)},
	} {
		p.Time = at
		if err := w.PDU(&p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.PDU(&control.TracedPDU{CID: 3, BHS: header(0, 0)}); err == nil {
		t.Error("a PDU of no connection is written")
	}
	if err := w.End(&control.TraceEnd{PDUs: 5, Missing: 9}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestCapture: sequence numbers count what there was, packets have no more than headers,
// and a PDU that no packet holds is in two.
func TestCapture(t *testing.T) {
	r, err := pcapgo.NewNgReader(bytes.NewReader(written(t)), pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		from     layers.TCPPort
		seq, ack uint32
		there, n int
	}{
		{4000, 1, 1, 48, 48},
		{3260, 1, 49, 48, 65_000},
		{3260, 65_001, 49, 0, 5048},
		{4001, 1, 1, 48, 56},
		{3260, 70_049, 49, 48, 48},
		{4000, 49, 70_097, 48, 48},
	} {
		data, info, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
		tcp, ok := p.Layer(layers.LayerTypeTCP).(*layers.TCP)
		headers := len(data) - want.there
		if !ok || tcp.SrcPort != want.from || tcp.Seq != want.seq || tcp.Ack != want.ack || info.Length-headers != want.n || len(tcp.Payload) != want.there || info.Timestamp.Nanosecond() != 123456789 {
			t.Errorf("found %v, %+v, expected %+v", p, info, want)
		}
	}
	if _, _, err := r.ReadPacketData(); !errors.Is(err, io.EOF) {
		t.Errorf("found %v", err)
	}
	if of, err := r.Interface(0); err != nil || of.Statistics.PacketsDropped != 9 || of.Statistics.PacketsReceived != 14 {
		t.Errorf("found %+v, %v, expected 9 of 14 missing", of.Statistics, err)
	}
}

// TestWireshark: Wireshark finds each PDU, the long one, too, and nothing wrong.
func TestWireshark(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("needs tshark (Debian's package of this name)")
	}
	path := filepath.Join(t.TempDir(), "trace.pcapng")
	if err := os.WriteFile(path, written(t), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tshark, "-r", path, "-T", "fields", "-e", "iscsi.opcode", "-e", "_ws.malformed", "-e", "tcp.analysis.flags").Output()
	want := "0x01\t\t|0x25\t\t|\t\t|0x01\t\t|0x21\t\t|0x01\t\t|"
	if got := strings.ReplaceAll(string(out), "\n", "|"); got != want {
		t.Errorf("found %s, %v, expected %s", got, err, want)
	}
}
