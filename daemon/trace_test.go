package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// tracing is a trace that is under way.
type tracing struct {
	out, messages eventually.Output
	status        chan int
}

// trace begins to trace the session with the number.
func (l *live) trace(args ...string) *tracing {
	l.t.Helper()
	r := &tracing{status: make(chan int, 1)}
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	l.t.Cleanup(cancel)
	go func() {
		r.status <- run(ctx, append([]string{"trace", "--state-dir", l.dir}, args...), cli.Console{Out: &r.out, Err: &r.messages})
	}()
	eventually.Says(l.t, r.messages.String, "lunar: tracing session")
	return r
}

// end waits for the end of the trace.
func (r *tracing) end(t *testing.T) string {
	t.Helper()
	if status := <-r.status; status != cli.ExitOK {
		t.Fatalf("found exit status %d: %s", status, r.messages.String())
	}
	return r.out.String()
}

// traffic logs in with CHAP, and begins again: what is traced is TEST UNIT READY, a read of
// a block, a write for which an R2T is sent, a command that does not exist, and the logout.
func (l *live) traffic(begin func(session string) *tracing) *tracing {
	l.t.Helper()
	c := dial(l.t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret"), Keys: initiator.Keys{{Name: "InitialR2T", Value: "Yes"}, {Name: "ImmediateData", Value: "No"}}})
	settle(l.t, c, 0)
	r := begin(fmt.Sprint(c.TSIH))
	transfer(l.t, c, make([]byte, 6), 0, nil, 0)
	transfer(l.t, c, readOne, 0, nil, 512)
	transfer(l.t, c, write, 0, []byte(strings.Repeat("the data ", 57)[:512]), 0)
	if _, err := c.Command([]byte{0xfe, 0, 0, 0, 0, 0}, 0, nil, 0); err != nil {
		l.t.Fatal(err)
	}
	if _, err := c.Logout(0); err != nil {
		l.t.Fatal(err)
	}
	return r
}

var (
	moments   = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{6}`)
	durations = regexp.MustCompile(`after=[0-9.]+us`)
	addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

const tracedText = `connection 0: ADDRESS at ADDRESS
TIME received 0 SCSI Command TEST UNIT READY lun=0 itt=0x3 final attribute=SIMPLE CmdSN=2 ExpStatSN=6 cdb=00000000000000000000000000000000
TIME sent     0 SCSI Response TEST UNIT READY GOOD lun=0 itt=0x3 after=USus final StatSN=6 ExpCmdSN=3 MaxCmdSN=130
TIME received 0 SCSI Command READ(10) lun=0 itt=0x4 transfer=read expected=512 final attribute=SIMPLE CmdSN=3 ExpStatSN=7 cdb=28000000000000000100000000000000
TIME sent     0 SCSI Data-In READ(10) GOOD lun=0 itt=0x4 after=USus offset=0 data=512 final StatSN=7 ExpCmdSN=4 MaxCmdSN=131 DataSN=0
TIME received 0 SCSI Command WRITE(10) lun=0 itt=0x5 transfer=write expected=512 final attribute=SIMPLE CmdSN=4 ExpStatSN=8 cdb=2a000000000000000100000000000000
TIME sent     0 Ready To Transfer WRITE(10) lun=0 itt=0x5 ttt=0x1 after=USus desired=512 offset=0 final StatSN=8 ExpCmdSN=5 MaxCmdSN=131 R2TSN=0
TIME received 0 SCSI Data-Out WRITE(10) lun=0 itt=0x5 ttt=0x1 after=USus offset=0 data=512 final ExpStatSN=8 DataSN=0
TIME sent     0 SCSI Response WRITE(10) GOOD lun=0 itt=0x5 after=USus final StatSN=8 ExpCmdSN=5 MaxCmdSN=132 ExpDataSN=1
TIME received 0 SCSI Command operation code feh lun=0 itt=0x6 final attribute=SIMPLE CmdSN=5 ExpStatSN=9 cdb=fe000000000000000000000000000000
TIME sent     0 SCSI Response operation code feh CHECK CONDITION lun=0 itt=0x6 after=USus data=20 final StatSN=9 ExpCmdSN=6 MaxCmdSN=133
TIME received 0 Logout Request reason="close the session" itt=0x7 final immediate CmdSN=6 ExpStatSN=10
TIME sent     0 Logout Response closed itt=0x7 after=USus final StatSN=10 ExpCmdSN=6 MaxCmdSN=133
`

// TestTrace: a session traced from its beginning to its end, as text: what is there, and
// neither data nor secrets.
func TestTrace(t *testing.T) {
	l := serveLive(t, liveConfig)
	text := l.traffic(func(session string) *tracing { return l.trace(session) }).end(t)
	text = moments.ReplaceAllString(text, "TIME")
	text = durations.ReplaceAllString(text, "after=USus")
	text = addresses.ReplaceAllString(text, "ADDRESS")
	if text != tracedText {
		t.Errorf("found\n%s\nexpected\n%s", text, tracedText)
	}
}

// TestTraceJSON: the lines of the API; one end, with the number of PDUs; no data.
func TestTraceJSON(t *testing.T) {
	l := serveLive(t, liveConfig)
	r := l.traffic(func(session string) *tracing { return l.trace(session, "-o", "json") })
	text := r.end(t)
	var lines []control.TraceLine
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var l control.TraceLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	last := lines[len(lines)-1].End
	if lines[0].Start == nil || lines[1].Connection == nil || last == nil || last.PDUs != len(lines)-3 || last.Missing != 0 || last.Reason != "the session has ended" {
		t.Errorf("found\n%s", text)
	}
	if secret := fmt.Sprintf("%x", "the data"); strings.Contains(text, secret) || strings.Contains(text, "secret") {
		t.Errorf("found data or secrets in\n%s", text)
	}
}

// TestTraceOfReplacedConnection: a connection that takes the place of another, which had
// digests, is told with its own address, and Wireshark tells the two apart.
func TestTraceOfReplacedConnection(t *testing.T) {
	l := serveLive(t, "server: {limits: {max-connections: 2}}\n"+liveConfig)
	o := initiator.Options{Target: "iqn.2026-11.test:u", HeaderDigest: "CRC32C", DataDigest: "CRC32C", Keys: initiator.Keys{{Name: "MaxConnections", Value: "2"}}}
	c := dial(t, l.portal, o)
	settle(t, c, 0)
	join := func() *initiator.Conn {
		t.Helper()
		o.CID, o.Keys = 1, nil
		n, err := c.Join(t.Context(), l.portal, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	for _, form := range [][]string{{"-o", "json"}, {"--pcapng", filepath.Join(l.dir, "replaced.pcapng")}} {
		first := join()
		r := l.trace(append([]string{fmt.Sprint(c.TSIH), "--records", "6"}, form...)...)
		for _, conn := range []func() *initiator.Conn{func() *initiator.Conn { return c }, func() *initiator.Conn { return first }, join} {
			if err := conn().Ping([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		text := r.end(t)
		if form[0] == "-o" {
			if n := strings.Count(text, `"connection":{"cid":1,`); n != 2 || len(initiatorsOf(text)) != 3 {
				t.Errorf("found connection 1 %d times, expected 2: %s", n, text)
			}
			continue
		}
		tshark, err := exec.LookPath("tshark")
		if err != nil {
			t.Skip("needs tshark (Debian's package of this name)")
		}
		port := l.portal[strings.LastIndexByte(l.portal, ':')+1:]
		out, err := exec.CommandContext(t.Context(), tshark, "-r", form[1], "-d", "tcp.port=="+port+",iscsi", "-T", "fields", "-e", "tcp.stream", "-e", "iscsi.opcode", "-e", "_ws.malformed", "-e", "tcp.analysis.flags").Output()
		if want := "0\t0x00\t\t\n0\t0x20\t\t\n1\t0x00\t\t\n1\t0x20\t\t\n2\t0x00\t\t\n2\t0x20\t\t\n"; string(out) != want {
			t.Errorf("found\n%s\n%v, expected\n%s", out, err, want)
		}
	}
}

// initiatorsOf are the initiator's addresses in a trace, each once.
func initiatorsOf(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`"address":"([^"]*)"`).FindAllStringSubmatch(text, -1) {
		found[m[1]] = true
	}
	return found
}

// TestTraceRefused: what is wrong is said.
func TestTraceRefused(t *testing.T) {
	l := serveLive(t, liveConfig)
	l.has(l.tgtd(cli.ExitFailure, "trace", "9"), "session 9 is not traced", "found no such session")
	l.has(l.tgtd(cli.ExitUsage, "trace", "9", "--seconds", "0"), "found --seconds 0")
	l.has(l.tgtd(cli.ExitUsage, "trace", "9", "--pcapng", "x", "-o", "json"), "found --pcapng and -o json")
	there := filepath.Join(l.dir, "there")
	writeFile(t, there, "")
	l.has(l.tgtd(cli.ExitFailure, "trace", "9", "--pcapng", there), "file exists")
	never := filepath.Join(l.dir, "never")
	l.has(l.tgtd(cli.ExitFailure, "trace", "9", "--pcapng", never), "found no such session")
	if _, err := os.Stat(never); err == nil {
		t.Error("found a file of a trace that has not begun")
	}
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret")})
	r := l.trace(fmt.Sprint(c.TSIH))
	l.has(l.tgtd(cli.ExitFailure, "trace", fmt.Sprint(c.TSIH)), "is being traced already")
	l.tgtd(cli.ExitOK, "kick", fmt.Sprint(c.TSIH))
	l.asked(c)
	if _, err := c.Logout(0); err != nil {
		t.Fatal(err)
	}
	if text := r.end(t); !strings.Contains(text, `Asynchronous Message reason="target requests logout"`) {
		t.Errorf("found\n%s", text)
	}
}

// TestTraceCapture: Wireshark knows every PDU of the file, and that data are missing.
func TestTraceCapture(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("needs tshark (Debian's package of this name)")
	}
	l := serveLive(t, liveConfig)
	file := filepath.Join(l.dir, "trace.pcapng")
	l.traffic(func(session string) *tracing { return l.trace(session, "--pcapng", file) }).end(t)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("found %v, %v", info, err)
	}
	port := l.portal[strings.LastIndexByte(l.portal, ':')+1:]
	cmd := exec.CommandContext(t.Context(), tshark, "-r", file, "-d", "tcp.port=="+port+",iscsi", "-T", "fields", "-e", "iscsi.opcode", "-e", "_ws.malformed", "-e", "tcp.analysis.flags")
	out, err := cmd.Output()
	var want strings.Builder
	for _, op := range []int{0x01, 0x21, 0x01, 0x25, 0x01, 0x31, 0x05, 0x21, 0x01, 0x21, 0x06, 0x26} {
		fmt.Fprintf(&want, "0x%02x\t\t\n", op)
	}
	if string(out) != want.String() {
		t.Errorf("found\n%s\n%v, expected\n%s", out, err, want.String())
	}
}
