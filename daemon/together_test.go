package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lunar/control"
	"lunar/control/server"
	"lunar/internal/eventually"
)

// applierOf changes a server of a file.
func applierOf(t *testing.T, text string) *applier {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	k := Options{Config: filepath.Join(dir, "tgtd.yaml")}
	writeFile(t, k.Config, text)
	l, err := k.load(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := assemble(l.Config, dir, log)
	if err != nil {
		t.Fatal(err)
	}
	a := newApplier(d, k, dir, log)
	a.read(l.text)
	t.Cleanup(func() {
		a.end()
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		if err := d.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestTogether: changes that wait for another one are made as one, each with its own
// conditions, answer and error, and whatever of them is refused hits no other.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault bool // one of them is refused only when it is put into force
	}{{"all fit", false}, {"one cannot be put into force", true}} {
		t.Run(c.name, func(t *testing.T) {
			a := applierOf(t, objectsConfig)
			volume := func(name string, v control.Object) control.Changes {
				return control.Changes{Edits: []control.Edit{{Path: []string{"volumes", name}, Set: v, IfNoneMatch: "*"}}}
			}
			ram := control.Object{"type": "ram", "size": "1MiB"}
			asked := []control.Changes{
				volume("a", ram), volume("b", ram), volume("disk", ram), // which there is
				volume("c", ram),
				{Edits: []control.Edit{{Path: []string{"targets", "iqn.2026-11.test:t", "luns", "1"}, Set: control.Object{"volume": "a"}}}},
				volume("d", ram), volume("a", ram), // which came before
			}
			refused := map[int]string{2: "expected none", 6: "expected none"}
			if c.fault {
				asked[5], refused[5] = volume("bad", control.Object{"type": "block", "path": "/dev/null"}), "volume bad"
			}
			out, errs := make([]control.Changed, len(asked)), make([]error, len(asked))
			var all sync.WaitGroup
			a.changing.Lock()
			for i, one := range asked {
				all.Go(func() { out[i], errs[i] = a.edit(server.Asker{By: fmt.Sprint("writer ", i)}, one) })
				eventually.Holds(t, "the change waits", func() bool { // in this order
					a.line.mu.Lock()
					defer a.line.mu.Unlock()
					return len(a.line.all) == i+1
				})
			}
			a.changing.Unlock()
			all.Wait()
			for i, err := range errs {
				if why := refused[i]; (err == nil) != (why == "") || err != nil && !strings.Contains(err.Error(), why) {
					t.Errorf("%d: found %v, expected %q", i, err, why)
				}
			}
			for i, own := range map[int]string{0: "volumes.a: new", 1: "volumes.b: new", 3: "volumes.c: new", 4: "targets.iqn.2026-11.test:t.luns: changed"} {
				if got := strings.Join(out[i].Changes, "; "); got != own || out[i].ETag == "" {
					t.Errorf("%d: found %q and ETag %q, expected %q", i, got, out[i].ETag, own)
				}
			}
			made, err := (&source{changes: a}).Generations()
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{false: 1, true: 4}[c.fault]; len(made) != want {
				t.Errorf("found %d states of the file, expected %d", len(made), want)
			}
			if last := made[len(made)-1]; !c.fault && (last.By != "writer 0, writer 1, writer 3, writer 4, writer 5" || out[0].Generation != last.Number || out[4].Generation != last.Number) {
				t.Errorf("found %+v", last)
			}
		})
	}
}

// TestLastApply: changes of objects are tries to change the configuration; mistakes in
// them, and objects that others have changed, are not.
func TestLastApply(t *testing.T) {
	a := applierOf(t, objectsConfig)
	s := &source{daemon: a.daemon, changes: a}
	change := func(dry bool, e control.Edit) {
		_, _ = s.Change(server.Asker{}, control.Changes{Edits: []control.Edit{e}, Permissions: control.Permissions{DryRun: dry}})
	}
	disk := []string{"volumes", "disk"}
	for _, step := range []struct {
		edit  control.Edit
		dry   bool
		noted string
	}{
		{control.Edit{Path: disk, Merge: control.Object{"read-only": true}}, true, "none"},
		{control.Edit{Path: disk, Merge: control.Object{"read-only": true}, IfMatch: `"another"`}, false, "none"},
		{control.Edit{Path: disk, Merge: control.Object{"size": "much"}}, false, "none"},
		{control.Edit{Path: disk, Merge: control.Object{"read-only": true}}, false, "done"},
		{control.Edit{Path: disk, Merge: control.Object{"type": "null"}}, false, "refused"},
		{control.Edit{Path: disk, Merge: control.Object{"read-only": false}}, false, "done"},
	} {
		change(step.dry, step.edit)
		noted := "none"
		if last := a.daemon.lastApply.Load(); last != nil {
			noted = map[bool]string{true: "done", false: "refused"}[last.OK]
		}
		if noted != step.noted {
			t.Errorf("%+v: found %s, expected %s", step.edit, noted, step.noted)
		}
	}
}

// TestBroken: who waited for a change that hit a fault does not take it for made.
func TestBroken(t *testing.T) {
	a := applierOf(t, objectsConfig)
	volume := func(name string) control.Changes {
		return control.Changes{Edits: []control.Edit{{Path: []string{"volumes", name}, Set: control.Object{"type": "ram", "size": "1MiB"}}}}
	}
	all := []*waiting{{asked: volume("a")}, {asked: volume("a")}}
	cfg := a.daemon.config.Load()
	func() {
		defer a.daemon.config.Store(cfg)
		defer func() {
			if recover() == nil {
				t.Error("found no fault")
			}
		}()
		a.daemon.config.Store(nil) // which is a fault
		a.makeAll(all)
	}()
	for i, w := range all {
		if !w.ended || w.err == nil {
			t.Errorf("%d: found %v", i, w)
		}
	}
}
