package daemon

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// check runs tgtd check and returns what it printed.
func (w *writeBack) check(t *testing.T) (status int, out, err string) {
	t.Helper()
	var o, e eventually.Output
	status = run(t.Context(), []string{"check", w.config, "--state-dir", w.dir}, cli.Console{Out: &o, Err: &e})
	return status, o.String(), e.String()
}

// accepts and refuses say what tgtd check must print.
func (w *writeBack) accepts(t *testing.T, wants ...string) {
	t.Helper()
	status, out, err := w.check(t)
	for _, want := range wants {
		if status != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("found exit status %d, expected %q in\n%s%s", status, want, out, err)
		}
	}
}

func (w *writeBack) refuses(t *testing.T, want string) {
	t.Helper()
	if status, out, err := w.check(t); status != cli.ExitFailure || !strings.Contains(err, want) {
		t.Errorf("found exit status %d, expected %q in\n%s%s", status, want, out, err)
	}
}

// TestCheckAsRoot: root may look at the configuration of a server of another user, whose
// directory of segments is there and no segment of its own yet.
func TestCheckAsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives directories away")
	}
	w := newWriteBack(t)
	dir := filepath.Join(w.memory, "lunar")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 1, 1)); err != nil {
		t.Fatal(err)
	}
	w.accepts(t, "ok: 1 target, 1 volume", dir+" belongs to another user")
}

// TestCheckSegment: tgtd check tells what a start would do with what is there,
// from before the first start on.
func TestCheckSegment(t *testing.T) {
	const volume = "{type: file, path: back.img, size: 32MiB, write: back, cache: true}"
	w := newWriteBack(t)
	w.accepts(t, "ok: 1 target, 1 volume, 0 warnings", "the cache has 16MiB: 8MiB on each of 2 NUMA nodes")

	s := serveChild(t, w.args()...)
	c := w.dial(t, s.portal)
	w.accepts(t, "has it now as process", "this version can attach it", "whether enough memory is free was not checked")
	writeAll(t, c, 0)
	s.end(t, syscall.SIGKILL)
	w.released(t)
	w.accepts(t, "of which 1.5MiB are not written yet, last used by version development, which did not stop in order: this version can attach it")

	w.cache(t, "size: 24MiB, block-size: 64KiB, segment: "+w.memory+"/lunar", volume)
	w.refuses(t, "it holds 1572864 bytes of unwritten data; start once with the old settings")
	w.cache(t, "size: 16MiB, block-size: 64KiB, segment: "+w.memory+"/other", volume)
	w.refuses(t, "start once with cache.segment: "+w.memory+"/lunar")

	w.configure(t, volume)
	stopped := serve(t, w.args()...)
	if status := stopped.stop(); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, stopped.log)
	}
	w.accepts(t, "of which 0B are not written yet, last used by version development, which stopped in order: this version can attach it")
	w.cache(t, "size: 24MiB, block-size: 64KiB, segment: "+w.memory+"/lunar", volume)
	w.accepts(t, "this version would replace it, for it has other settings")
	segment := filepath.Join(w.memory, "lunar", mustIdentity(t, w.dir))
	const refusal = "refused: found a file of 7 bytes, expected a cache segment"
	writeFile(t, segment, "damaged")
	w.refuses(t, refusal)
	w.configure(t, volume)
	var out, log eventually.Output
	if status := run(t.Context(), append([]string{"serve"}, w.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), refusal) {
		t.Errorf("found exit status %d\n%s", status, &log)
	}
	if data, err := os.ReadFile(segment); err != nil || string(data) != "damaged" {
		t.Errorf("found %q, %v in a file that was refused, expected it unchanged", data, err)
	}
}

// released waits until the kernel has taken the segment from a killed process:
// some of its I/O may have been under way.
func (w *writeBack) released(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the killed process has let go of the segment", func() bool {
		_, out, _ := w.check(t)
		return !strings.Contains(out, "has it now")
	})
}

// cache writes the configuration with this cache and volume.
func (w *writeBack) cache(t *testing.T, cache, volume string) {
	t.Helper()
	writeFile(t, w.config, `
server: {nodes: 2}
cache: {`+cache+`}
volumes: {back: `+volume+`}
targets: {"`+writeBackTarget+`": {luns: {0: back}}}
`)
}

func mustIdentity(t *testing.T, dir string) string {
	t.Helper()
	id, _, err := state.ReadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestCheckMemory: a cache that does not fit is refused with numbers, and memory
// that a server has need not be free.
func TestCheckMemory(t *testing.T) {
	w := newWriteBack(t)
	for cache, want := range map[string]string{
		"size: 1TiB":                                                  "of memory that this process may use",
		"size: {per-node: 1TiB}":                                      "found 1TiB on 2 NUMA nodes, 2TiB together",
		"size: 32MiB, segment: /proc/lunar":                           "expected tmpfs or hugetlbfs",
		"size: 32MiB, segment: " + w.dir + "/x/y":                     "no such file",
		"size: 32MiB, segment: /dev/shm":                              "found mode 1777, expected 0700",
		"size: 32MiB, huge: require, segment: " + w.memory + "/lunar": "its directory is not on hugetlbfs",
	} {
		w.cache(t, cache, "{type: file, path: v, size: 1MiB, cache: true}")
		w.refuses(t, want)
	}
	w.cache(t, "size: 5%", "{type: file, path: v, size: 1MiB, cache: true}")
	w.accepts(t, "the cache has ")
	l, err := net.Listen("unix", filepath.Join(w.dir, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w.accepts(t, "a server runs: whether enough memory is free was not checked")
}

// TestCheckTopology: nodes that the machine cannot have are found.
func TestCheckTopology(t *testing.T) {
	w := newWriteBack(t)
	writeFile(t, w.config, `server: {nodes: ["8191"]}`)
	w.refuses(t, "server.nodes: NUMA node 0: CPU 8191 is not one that this process may use")
}
