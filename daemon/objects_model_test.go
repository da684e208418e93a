package daemon

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/internal/cli"
)

// chance draws changes of objects.
type chance struct{ *rand.Rand }

func (r chance) of(words ...string) string { return words[r.IntN(len(words))] }

// change is one that may or may not be in order.
func (r chance) change() control.Edit {
	target := "iqn.2026-11.test:" + r.of("t", "u")
	switch r.IntN(8) {
	case 0, 1:
		return control.Edit{Path: []string{"volumes", r.of("a", "b", "c.d", "null")}, Set: control.Object{"type": "null", "size": r.of("1MiB", "2MiB"), "vendor": r.of("x", "# y", "true")}}
	case 2:
		return control.Edit{Path: []string{"volumes", r.of("a", "b", "c.d", "null")}, Merge: control.Object{"read-only": r.IntN(2) == 0}}
	case 3:
		return control.Edit{Path: []string{"volumes", r.of("a", "b", "c.d", "null")}, Remove: true}
	case 4:
		return control.Edit{Path: []string{"targets", target}, Set: control.Object{"alias": r.of("one", "two: #", "'"), "luns": []any{}}}
	case 5:
		return control.Edit{Path: []string{"targets", target, "luns", strconv.Itoa(r.IntN(3))}, Set: control.Object{"volume": r.of("a", "b", "c.d", "null", "disk")}}
	case 6:
		return control.Edit{Path: []string{"targets", target, "luns", strconv.Itoa(r.IntN(3))}, Remove: true}
	}
	return control.Edit{Path: []string{"auth-groups", "g", "chap", r.of("u", "v: w")}, Set: control.Object{"secret": "a secret of " + r.of("one", "two")}}
}

// TestAnyObjects: whatever is changed, the file says what a model says and what is
// running, and served anew it still does.
func TestAnyObjects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := chance{rand.New(rand.NewPCG(seed, 0))}
	o := serveObjects(t, objectsConfig)
	first, err := edit.Parse([]byte(objectsConfig))
	if err != nil {
		t.Fatal(err)
	}
	model, made := first.Tree(), 0
	for range 80 {
		e := r.change()
		_, err := o.api.Change(t.Context(), control.Changes{Edits: []control.Edit{e}, Permissions: control.Permissions{Yes: true}})
		var refusal *control.Refusal
		if err != nil && !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		if err != nil {
			continue // the file is compared all the same
		}
		made++
		switch {
		case e.Remove:
			model, err = edit.Remove(model, e.Path...)
		case e.Set != nil:
			model, err = edit.Set(model, edit.Object(e.Set), e.Path...)
		default:
			model, err = edit.Merge(model, edit.Object(e.Merge), e.Path...)
		}
		if err != nil {
			t.Fatal(err)
		}
		if now, err := edit.Parse([]byte(o.text())); err != nil || !edit.Same(now.Tree(), model) {
			t.Fatalf("after %+v: found %v and\n%s\nexpected %v", e, err, o.text(), model)
		}
	}
	if made == 0 {
		t.Fatal("every change was refused")
	}
	running := raw(t, o.api, control.ConfigPath)
	if drift := statusFrom(t, o.api).Drift; len(drift) != 0 {
		t.Errorf("found drift %+v", drift)
	}
	if o.stop() != cli.ExitOK {
		t.Fatalf("the server failed:\n%s", o.log)
	}
	o.start()
	if again := raw(t, o.api, control.ConfigPath); again != running {
		t.Errorf("found %s\nbefore %s", again, running)
	}
}

// TestWriters: of changes that several writers make of the same objects at a time none is
// lost.
func TestWriters(t *testing.T) {
	const writers, each, volumes = 4, 15, 5
	text := "portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes:\n"
	for i := range volumes {
		text += fmt.Sprintf("  v%d: {type: \"null\", size: 1MiB, sanitize-rate: 1MiB} # number %d\n", i, i)
	}
	o := serveObjects(t, text+"targets: {\"iqn.2026-11.test:t\": {luns: {0: v0}}}\n")
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range each {
				if err := increment(t, o.api, fmt.Sprintf("v%d", (w+i)%volumes)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	cfg, _, err := conf.Parse("file", []byte(o.text()))
	if err != nil {
		t.Fatal(err)
	}
	sum := conf.Size(0)
	for _, v := range cfg.Volumes {
		sum += v.SanitizeRate / conf.MiB
	}
	if sum != writers*each+volumes {
		t.Errorf("found %d changes in the file, expected %d", sum-volumes, writers*each)
	}
}

// increment adds 1 MiB to a rate, whoever else does the same.
func increment(t *testing.T, api *control.Client, volume string) error {
	for {
		v, err := api.Volume(t.Context(), volume)
		if err != nil {
			return err
		}
		rate, err := conf.ParseSize(v.Config["sanitize-rate"].(string))
		if err != nil {
			return err
		}
		_, err = api.Patch(t.Context(), control.VolumeAt(volume), control.Object{"sanitize-rate": (rate + conf.MiB).String()}, control.Permissions{}, control.Condition{Match: v.ETag})
		var r *control.Refusal
		if errors.As(err, &r) && r.Stale {
			continue
		}
		return err
	}
}
