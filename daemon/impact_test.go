package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// thickConfig has a file that can be cut.
var thickConfig = strings.Replace(liveConfig, "path: file, size: 1MiB", "path: file, size: 3MiB", 1)

// TestApplyDestructive: what destroys data, or hits sessions, is refused with their
// names and with the command that does it, and nothing has changed; so it is told by
// a dry run.
func TestApplyDestructive(t *testing.T) {
	l := serveLive(t, thickConfig)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, c, 0)
	const gone = "  iqn.2026-11.test:u: {luns: {0: ram}}\n"
	for _, test := range []struct {
		replace []string
		want    []string
	}{
		{[]string{"path: file, size: 3MiB", "path: file, size: 1MiB"}, []string{"volumes.file.size: it is cut from 3145728 to 1048576 bytes", "--allow-shrink file"}},
		{[]string{gone, ""}, []string{"targets.iqn.2026-11.test:u: it is removed", "of iqn.2026-01.lunar:initiator from 127.0.0.1", "--yes"}},
		{[]string{gone, "", "path: file, size: 3MiB", "path: file, size: 1MiB"}, []string{"targets.iqn.2026-11.test:u: it is removed", "--yes --allow-shrink file"}},
		{[]string{thickConfig[strings.Index(thickConfig, "volumes:"):], "log: {level: info}\n"}, []string{"it has no volumes", "it has no targets"}},
	} {
		writeFile(t, l.file, strings.NewReplacer(test.replace...).Replace(l.text))
		l.has(l.tgtd(cli.ExitDestructive, "apply", "-n", l.file), test.want...)
		text := l.tgtd(cli.ExitDestructive, "apply", l.file)
		l.has(text, append(test.want, "nothing was changed", "to do it all the same: lunar apply --state-dir "+l.dir+" "+l.file+" --")...)
		l.sense(c, 0, 0, 0)
	}
	for _, text := range []string{"", "# nothing\n", "null\n"} {
		writeFile(t, l.file, text)
		l.has(l.tgtd(cli.ExitFailure, "apply", "--yes", l.file), "found an empty file", "nothing was changed")
		l.has(l.tgtd(cli.ExitFailure, "check", l.file), "found an empty file")
	}
	writeFile(t, l.file, l.text)
	l.has(l.tgtd(cli.ExitFailure, "apply", "--allow-shrink", "flie", l.file), `found "flie", expected a volume of the file`)
	if info, err := os.Stat(filepath.Join(l.dir, "file")); err != nil || info.Size() != 3<<20 {
		t.Errorf("found %v, %v, expected a file that was not cut", info, err)
	}
	l.allow = []string{"--yes", "--allow-shrink", "file"}
	l.apply(cli.ExitOK, []string{gone, "", "path: file, size: 3MiB", "path: file, size: 1MiB"}, "destructive: volumes.file.size: it is cut")
	l.asked(c)
}

// TestHangupDestructive: SIGHUP does nothing that is destructive, whatever else the file
// has, and says so with the command.
func TestHangupDestructive(t *testing.T) {
	l := serveLive(t, thickConfig)
	hangUp := func(text, want string) {
		t.Helper()
		writeFile(t, l.file, text)
		l.hangUp(t, want)
	}
	hangUp(strings.Replace(l.text, "path: file, size: 3MiB", "path: file, size: 1MiB", 1), `"allow with"="lunar apply --state-dir `+l.dir+" "+l.file+` --allow-shrink file"`)
	hangUp(strings.Replace(strings.Replace(l.text, "  ram: {type: ram, size: 1MiB}\n", "", 1), "  iqn.2026-11.test:u: {luns: {0: ram}}\n", "", 1), "volumes.ram: it is removed, and its 1048576 bytes of data with it")
	hangUp("# cut off\n", "found an empty file")
	if out := l.tgtd(cli.ExitOK, "status"); !strings.Contains(out, "ram   ") {
		t.Errorf("found no volume ram in\n%s", out)
	}
	hangUp(l.text, "outcome=done")
}

// TestServeDestructive: a start is compared with what was in force last.
func TestServeDestructive(t *testing.T) {
	l := serveLive(t, thickConfig)
	path := filepath.Join(l.dir, "file")
	refused := func(status int, text string, want ...string) {
		t.Helper()
		l.serving.stop()
		writeFile(t, l.file, text)
		l.has(l.tgtd(status, "serve", "-c", l.file), want...)
	}
	small := strings.Replace(thickConfig, "path: file, size: 3MiB", "path: file, size: 1MiB", 1)
	refused(cli.ExitDestructive, small, "volumes.file.size: it is cut from 3145728 to 1048576 bytes", "once: tgtd serve --config "+l.file+" --state-dir "+l.dir+" --allow-shrink file")
	refused(cli.ExitDestructive, strings.Replace(thickConfig, "type: file, path: file,", "type: ram,", 1), "initiators would find another disk under the same identity", "--yes")
	refused(cli.ExitDestructive, "log: {level: info}\n", "it has no volumes")
	refused(cli.ExitFailure, "\n", "found an empty file")
	l.has(l.tgtd(cli.ExitDestructive, "serve"), "it is the built-in one, and the server was last started with "+l.file)
	if err := appliedFile(l.dir).Remove(); err != nil {
		t.Fatal(err)
	}
	refused(cli.ExitDestructive, small, "it is cut from 3145728 to 1048576 bytes") // by the first start of this version, too
	if info, err := os.Stat(path); err != nil || info.Size() != 3<<20 {
		t.Errorf("found %v, %v, expected a file that was not cut", info, err)
	}

	writeFile(t, l.file, small)
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir, "--allow-shrink", "file")
	if info, err := os.Stat(path); err != nil || info.Size() != 1<<20 {
		t.Errorf("found %v, %v, expected a file that was cut", info, err)
	}
}

// TestServeForgets: a start without a volume of which the cache has what its file has
// not is refused.
func TestServeForgets(t *testing.T) {
	w := newWriteBack(t)
	s := serveChild(t, w.args()...)
	writeAll(t, w.dial(t, s.portal), 0)
	s.end(t, syscall.SIGKILL)
	text, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.NewReplacer("volumes: {back: ", "volumes: {else: ", "0: back", "0: else", "back.img", "else.img").Replace(string(text))
	writeFile(t, w.config, renamed)
	expectRefusal(t, w, "volume back: found 1.5MiB of it in the cache that were acknowledged")
	w.flags = []string{"--yes"}
	serve(t, w.args()...).stop()
	w.flags = nil
	serve(t, w.args()...).stop() // it was given up once
	writeFile(t, w.config, string(text))
	again := serve(t, w.args()...)
	c := w.dial(t, again.portal)
	readAll(t, c, 0)
	logout(t, c)
}
