package daemon

import (
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// liveConfig has a file, memory, and a target of each.
const liveConfig = `
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
auth-groups: {hosts: {chap: [{user: u, secret: "the first secret"}]}}
volumes:
  file: {type: file, path: file, size: 1MiB}
  ram: {type: ram, size: 1MiB}
targets:
  iqn.2026-11.test:t: {luns: {0: file}, auth-group: hosts}
  iqn.2026-11.test:u: {luns: {0: ram}}
`

// live is a server whose configuration is changed.
type live struct {
	*controlled
	text  string
	allow []string // flags of apply
}

func serveLive(t *testing.T, text string) *live {
	t.Helper()
	dir := t.TempDir()
	l := &live{&controlled{t: t, dir: dir, file: filepath.Join(dir, "tgtd.yaml")}, text, nil}
	writeFile(t, l.file, text)
	l.serving = serve(t, "-c", l.file, "--state-dir", dir)
	return l
}

// apply changes the text, applies it and looks for words in what is printed.
func (l *live) apply(status int, replace []string, want ...string) {
	l.t.Helper()
	text := strings.NewReplacer(replace...).Replace(l.text)
	writeFile(l.t, l.file, text)
	l.has(l.tgtd(status, append([]string{"apply", l.file}, l.allow...)...), want...)
	if status != cli.ExitOK {
		return
	}
	l.text = text
	l.has(l.tgtd(cli.ExitOK, "apply", l.file), "nothing to change")
}

// chap proves who the initiator is.
func chap(secret string) *initiator.CHAP {
	return &initiator.CHAP{User: "u", Secret: []byte(secret)}
}

// senseOf runs TEST UNIT READY.
func senseOf(t *testing.T, c *initiator.Conn, lun uint64) [2]byte {
	t.Helper()
	res, err := c.Command(make([]byte, 6), lun, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, asc, ascq := res.SenseKey()
	return [2]byte{asc, ascq}
}

func (l *live) sense(c *initiator.Conn, lun uint64, asc, ascq byte) {
	l.t.Helper()
	if got := senseOf(l.t, c, lun); got != [2]byte{asc, ascq} {
		l.t.Errorf("LUN %d: found sense %x, expected %02x %02x", lun, got, asc, ascq)
	}
}

// asked waits for the request to log out.
func (l *live) asked(c *initiator.Conn) {
	l.t.Helper()
	for {
		for _, p := range c.Async {
			if p.BHS[36] == 1 {
				return
			}
		}
		if _, err := c.Step(eventually.Patience); err != nil {
			l.t.Fatalf("found %v, expected a request to log out", err)
		}
	}
}

// TestApplyLive: what is changed while sessions go on is seen by those whom it
// concerns, and by nobody else.
func TestApplyLive(t *testing.T) {
	l := serveLive(t, liveConfig)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret")})
	other := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, c, 0)
	settle(t, other, 0)
	l.has(l.tgtd(cli.ExitOK, "sessions"), "iqn.2026-11.test:t", "iqn.2026-11.test:u")

	l.apply(cli.ExitOK, []string{
		"  ram:", "  more: {type: file, path: more, size: 1MiB}\n  ram:",
		"{0: file}", "{0: file, 5: more}",
		"targets:\n", "targets:\n  iqn.2026-11.test:v: {luns: {1: more}}\n",
	}, "volumes.more: new", "targets.iqn.2026-11.test:v: new", "targets.iqn.2026-11.test:t.luns: changed")
	l.sense(c, 0, 0x3f, 0x0e)
	settle(t, c, 5)
	polite := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:v"})
	left := make(chan error)
	go func() {
		for len(polite.Async) == 0 {
			if _, err := polite.Step(time.Minute); err != nil {
				left <- err
				return
			}
		}
		_, err := polite.Logout(0)
		left <- err
	}()

	l.apply(cli.ExitOK, []string{"file, size: 1MiB", "file, size: 2MiB"}, "volumes.file.size: 2MiB, was 1MiB")
	l.sense(c, 0, 0x2a, 0x09)
	if _, blocks, err := c.Capacity(0); err != nil || blocks != 4096 {
		t.Errorf("found %d blocks, %v", blocks, err)
	}
	writeFile(t, l.file, strings.Replace(l.text, "file, size: 2MiB", "file, size: 1MiB", 1))
	l.has(l.tgtd(cli.ExitDestructive, "apply", "--dry-run", l.file), "volumes.file.size: 1MiB, was 2MiB", "Nothing was changed", "1048576 bytes (1MiB) behind the new end are destroyed")
	l.allow = []string{"--yes", "--allow-shrink", "file"}
	l.sense(c, 0, 0, 0)
	l.apply(cli.ExitOK, []string{"file, size: 2MiB", "file, size: 1MiB"}, "volumes.file.size: 1MiB, was 2MiB")
	l.sense(c, 0, 0x2a, 0x09)

	l.apply(cli.ExitOK, []string{
		"  more: {type: file, path: more, size: 1MiB}\n", "", ", 5: more", "",
		"  iqn.2026-11.test:v: {luns: {1: more}}\n", "", "the first secret", "the other secret",
	}, "volumes.more: removed", "targets.iqn.2026-11.test:v: removed", "targets.iqn.2026-11.test:v: sessions asked to log out: 1", "auth-groups.hosts.chap: changed")
	if err := <-left; err != nil {
		t.Error(err)
	}
	l.sense(c, 0, 0x3f, 0x0e)
	l.sense(c, 5, 0x25, 0)
	if text := l.tgtd(cli.ExitOK, "config"); strings.Contains(text, "secret") && !strings.Contains(text, "***") || strings.Contains(text, "the other") {
		t.Errorf("found a secret in\n%s", text)
	}
	dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the other secret"), ISID: [6]byte{0x80, 1}})
	l.sense(other, 0, 0, 0)
	if len(other.Async) > 0 {
		t.Errorf("found %v, expected that a session that nothing concerns notices nothing", other.Async)
	}

	l.apply(cli.ExitOK, []string{"u: {luns: {0: ram}}", `u: {access: [{initiators: ["iqn.x*"], luns: {0: ram}}]}`}, "targets.iqn.2026-11.test:u: sessions asked to log out: 1")
	l.asked(other)
	l.apply(cli.ExitOK, []string{"portal-groups:", "log: {level: debug}\nserver: {limits: {sessions: 2}}\nportal-groups:"},
		`log.level: "debug", was "info"`, "server.limits.sessions: 2, was 1024")
	if !strings.Contains(l.log.String(), "initiator asked to log out") {
		t.Errorf("found no word of the dismissal in\n%s", l.log)
	}
}

// watchers counts the goroutines that look at the space of volumes.
func watchers(t *testing.T) int {
	t.Helper()
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	return strings.Count(stacks.String(), "(*LogicalUnit).watchSpace.func1(")
}

// TestApplyFails: what cannot be put into force as a whole is not at all.
func TestApplyFails(t *testing.T) {
	l := serveLive(t, liveConfig)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret")})
	settle(t, c, 0)
	before := l.tgtd(cli.ExitOK, "config")
	good := "  good: {type: file, path: good, size: 1MiB, soft-threshold: 1MiB}\n"
	writeFile(t, filepath.Join(l.dir, "foreign"), strings.Repeat("x", 24<<10))
	for _, test := range []struct {
		replace []string
		want    []string
	}{
		{[]string{"  ram:", good + "  bad: {type: file, path: no/such/dir, size: 1MiB}\n  ram:", "file, size: 1MiB", "file, size: 2MiB"}, []string{"volume bad", "no such file"}},
		{[]string{"  ram:", good + "  twice: {type: file, path: " + l.dir + "/./../" + filepath.Base(l.dir) + "/file}\n  ram:"}, []string{"volume twice"}},
		{[]string{"  ram:", "  good: {type: file, path: good, size: 1MiB, protection: 1, protection-file: foreign}\n  ram:"}, []string{"volume good", "foreign"}},
		{[]string{"  ram:", good + "  ram:", "127.0.0.1:0", `127.0.0.1:0", "192.0.2.77:1`}, []string{"192.0.2.77:1", "no network interface"}},
		{[]string{"  ram:", good + "  ram:", "volumes:", "qos: {capacity: 5}\nvolumes:"}, []string{"needs a restart", "qos.capacity"}},
		{[]string{"  ram:", good + "  ram:", "volumes:", `qos: {rules: [{name: r, initiators: ["*"], limit: 1, reservation: 2}]}` + "\nvolumes:"}, []string{"tgtd.yaml:4:", "qos.rules[0].limit"}},
		{[]string{"type: ram, size: 1MiB", "type: ram, size: 2GiB"}, []string{"volume \"ram\"", "expected at most 16777216, which is 16 times its first size"}},
		{[]string{"type: ram, size: 1MiB", "type: \"null\", size: 1MiB"}, []string{"needs a restart", "volumes.ram.type"}},
		{[]string{"path: file,", "path: other,"}, []string{"needs a restart", "volumes.file.path"}},
		{[]string{"  ram:", good + "  ram:", "{0: file}", "{0: flie}"}, []string{"tgtd.yaml:9:", "one of file, good, ram"}},
	} {
		l.apply(cli.ExitFailure, test.replace, append(test.want, "was not applied, and nothing was changed")...)
		if _, err := os.Stat(filepath.Join(l.dir, "good")); err == nil {
			t.Errorf("%q: a file was made by a configuration that was refused", test.replace)
		}
		if n := watchers(t); n > 0 {
			t.Errorf("%q: %d closed volumes are looked at", test.replace, n)
		}
	}
	if after := l.tgtd(cli.ExitOK, "config"); after != before {
		t.Errorf("found\n%s, expected\n%s", after, before)
	}
	l.sense(c, 0, 0, 0)
	if _, blocks, err := c.Capacity(0); err != nil || blocks != 2048 {
		t.Errorf("found %d blocks, %v", blocks, err)
	}
	l.apply(cli.ExitOK, []string{"  ram:", good + "  ram:"}, "volumes.good: new")
	if n := watchers(t); n != 1 {
		t.Errorf("%d volumes are looked at, expected 1", n)
	}
}

// TestAdminCommands: sessions are ended and sent elsewhere, and sizes looked at
// again.
func TestAdminCommands(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "outside")
	writeFile(t, path, strings.Repeat("x", 8192))
	l := serveLive(t, strings.Replace(liveConfig, "ram: {type: ram, size: 1MiB}", "ram: {type: file, path: "+path+"}", 1))
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, c, 0)
	if err := os.Truncate(path, 16384); err != nil {
		t.Fatal(err)
	}
	l.has(l.tgtd(cli.ExitOK, "rescan", "ram"), "16384 bytes, was 8192")
	l.sense(c, 0, 0x2a, 0x09)
	if err := os.Truncate(path, 32768); err != nil {
		t.Fatal(err)
	}
	l.has(l.tgtd(cli.ExitOK, "apply", "-n", l.file), "volumes.ram.size: 32KiB, was 16KiB")
	l.has(l.tgtd(cli.ExitOK, "apply", l.file), "volumes.ram.size: 32KiB, was 16KiB")
	l.sense(c, 0, 0x2a, 0x09)
	l.has(l.tgtd(cli.ExitFailure, "rescan", "file"), "configured size")
	l.has(l.tgtd(cli.ExitFailure, "rescan", "nothing"), "found no volume")
	l.has(l.tgtd(cli.ExitUsage, "apply"), "expected one")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	l.has(l.tgtd(cli.ExitFailure, "rescan", "ram"), "no such file or directory; the volume goes on with the open file or device")
	writeFile(t, path, strings.Repeat("y", 65536))
	l.has(l.tgtd(cli.ExitFailure, "rescan", "ram"), "leads to another file or device than the volume has open")
	l.has(l.tgtd(cli.ExitOK, "apply", l.file), "nothing to change")
	l.sense(c, 0, 0, 0)
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	l.has(l.tgtd(cli.ExitOK, "rescan", "ram"), "32768 bytes, was 32768")

	l.has(l.tgtd(cli.ExitFailure, "kick", "iqn.nobody"), "found none that matches")
	l.has(l.tgtd(cli.ExitOK, "kick", "iqn.*"), "Sessions asked to log out: 1")
	l.asked(c)
	if _, err := c.Logout(0); err != nil {
		t.Error(err)
	}
	l.has(l.tgtd(cli.ExitFailure, "drain", "nothing"), "found no portal group")
	l.has(l.tgtd(cli.ExitFailure, "drain", "a", "--to", "not a host"), "expected an address or a DNS name")
	for _, portal := range []string{"a", l.portal} {
		l.has(l.tgtd(cli.ExitFailure, "drain", portal, "--to", l.portal), "drained itself: initiators would go round in circles")
	}
	l.has(l.tgtd(cli.ExitFailure, "drain", "a", "--off"), "not being drained")
	l.has(l.tgtd(cli.ExitOK, "drain", l.portal), l.portal+": logins are refused until later")
	l.has(l.tgtd(cli.ExitOK, "drain", "a", "--to", "192.0.2.1"), "portal-groups.a: logins are sent to 192.0.2.1:3260")
	l.has(l.tgtd(cli.ExitOK, "drain", l.portal, "--off"), "portal-groups.a")
	if _, err := initiator.Dial(t.Context(), l.portal, initiator.Options{Target: "iqn.2026-11.test:u"}); err == nil || !strings.Contains(err.Error(), "0x0101") {
		t.Errorf("found %v, expected a redirection", err)
	}
	eventually.Says(t, l.log.String, `level=INFO msg="login redirected"`, "redirected to 192.0.2.1:3260")
	if strings.Contains(l.log.String(), `level=WARN msg="login failed"`) {
		t.Errorf("a redirection is a warning:\n%s", l.log)
	}
	l.has(l.tgtd(cli.ExitOK, "drain", "a", "--off"), "Nothing is drained")
	l.apply(cli.ExitOK, []string{"a: {listen", "a: {redirect: other.example, listen"}, `portal-groups.a.redirect: "other.example:3260", was ""`)
	if _, err := initiator.Dial(t.Context(), l.portal, initiator.Options{Target: "iqn.2026-11.test:u"}); err == nil || !strings.Contains(err.Error(), "0x0101") {
		t.Errorf("found %v, expected a redirection", err)
	}
}
