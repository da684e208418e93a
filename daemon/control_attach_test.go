package daemon

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/control"
)

// TestControlOfWriteBack: status and metrics tell dirty bytes, and after kill -9
// and after a stop in order what became of them.
func TestControlOfWriteBack(t *testing.T) {
	const dirty = extents * 64 << 10
	w := newWriteBack(t)
	s := serveChild(t, w.args()...)
	c := w.dial(t, s.portal)
	writeAll(t, c, 0)
	fresh, _ := w.status(t)
	if fresh.Cache.Attach.Outcome != "fresh" || fresh.Cache.DirtyBytes != dirty || fresh.Volumes[0].Cache.DirtyBytes != dirty || fresh.Volumes[0].Write != "back" || len(fresh.Cache.Nodes) != 2 {
		t.Errorf("found %+v, attached %+v, volume %+v", fresh.Cache, fresh.Cache.Attach, fresh.Volumes[0].Cache)
	}
	checkForwards(t, fresh.Cache)
	s.end(t, syscall.SIGKILL)

	s = serveChild(t, w.args()...) // the socket of the dead process is there
	crashed, metrics := w.status(t)
	a := crashed.Cache.Attach
	if a.Outcome != "crashed" || a.DirtyBytes != dirty || a.WarmBlocks == 0 || a.Generation != 2 || len(a.Orphans) != 0 || crashed.Cache.DirtyBytes != dirty {
		t.Errorf("found %+v, %d bytes are dirty", a, crashed.Cache.DirtyBytes)
	}
	for _, want := range []string{
		`lunar_cache_attach_info{outcome="crashed"} 1`,
		fmt.Sprintf("lunar_cache_attach_warm_blocks %d", a.WarmBlocks),
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("found no %s in\n%s", want, metrics)
		}
	}
	if err := s.end(t, syscall.SIGTERM); err != nil {
		t.Fatalf("found %v, expected exit status 0\n%s", err, s.log)
	}

	s = serveChild(t, w.args()...)
	warm, _ := w.status(t)
	if a := warm.Cache.Attach; a.Outcome != "warm" || a.DirtyBytes != 0 || a.WarmBlocks == 0 || warm.Cache.DirtyBytes != 0 || warm.Volumes[0].Cache.ResidentBytes == 0 {
		t.Errorf("found %+v, %+v", a, warm.Volumes[0].Cache)
	}
	if err := s.end(t, syscall.SIGTERM); err != nil {
		t.Errorf("found %v, expected exit status 0\n%s", err, s.log)
	}
}

// checkForwards: with two nodes each request is looked up and served somewhere.
func checkForwards(t *testing.T, c *control.Cache) {
	t.Helper()
	var served, sent, looked uint64
	for _, n := range c.Nodes {
		served += n.Local + n.Remote
		sent += n.Forwarded
		looked += n.Interpreted
	}
	if looked < extents || served != looked || sent > looked || !c.ForwardAdaptive {
		t.Errorf("found %d requests looked up, %d served, %d forwarded: %+v", looked, served, sent, c.Nodes)
	}
}

// status asks the server for status and metrics.
func (w *writeBack) status(t *testing.T) (control.Status, string) {
	t.Helper()
	api, err := control.Dial(filepath.Join(w.dir, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	return statusFrom(t, api), raw(t, api, "/metrics")
}
