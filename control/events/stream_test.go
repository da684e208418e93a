package events

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lunar/control"
)

// TestStream: who reads in time gets everything once, who does not is told how many are
// gone, and the ID of another process's event is the oldest.
func TestStream(t *testing.T) {
	s := New(time.UnixMilli(1e12))
	publish := func(n int) {
		for range n {
			s.Publish(control.Event{Kind: "k"})
		}
	}
	at, _ := s.Position(""), s.id(0)
	_, _, more := s.From(at)
	select {
	case <-more:
		t.Error("there is an event already")
	default:
	}
	publish(3)
	<-more
	found, next, _ := s.From(at)
	if len(found) != 3 || next != 4 || found[0].ID == found[1].ID {
		t.Fatalf("found %v, next %d", found, next)
	}
	if got := s.Position(found[1].ID); got != 3 {
		t.Errorf("after the second: found %d", got)
	}
	publish(Capacity + 10)
	found, _, _ = s.From(next)
	if len(found) != Capacity+1 || found[0].Kind != control.Lost || found[0].Fields["count"] != "10" {
		t.Errorf("found %d, the first %+v, expected one for the 10 that are gone", len(found), found[0])
	}
	if after := s.Position(found[0].ID); after != next+10 {
		t.Errorf("after what is gone: found %d", after)
	}
	for _, id := range []string{"", "x", "other-5", s.id(1 << 40)} {
		if got := s.Position(id); got != s.oldest() {
			t.Errorf("%q: found %d, expected the oldest", id, got)
		}
	}
}

// TestTee: an event says what its line says, also where the log has no such line.
func TestTee(t *testing.T) {
	var text bytes.Buffer
	s := New(time.Now())
	log := slog.New(Tee(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelError}), s)).With("initiator", "iqn.x")
	log.Info("session opened", "tsih", 7)
	log.Info("no event")
	log.Error("backing store failed", "err", fs.ErrPermission)
	found, _, _ := s.From(1)
	if len(found) != 2 || found[0].Kind != "login" || found[0].Fields["initiator"] != "iqn.x" || found[0].Fields["tsih"] != "7" || found[1].Fields["err"] != "permission denied" {
		t.Errorf("found %+v", found)
	}
	if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "backing store failed") {
		t.Errorf("found %q, expected the error alone", got)
	}
}

// TestKindsAreLogged: every message that is an event stands in the source, so that one
// that is worded anew does not end the event.
func TestKindsAreLogged(t *testing.T) {
	said := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "kinds.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					said[text] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for message := range kinds {
		if !said[message] {
			t.Errorf("%q is logged nowhere", message)
		}
	}
}
