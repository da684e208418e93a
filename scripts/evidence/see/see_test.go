package main

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scripts/evidence/daemon"
)

var tgtd string

func TestMain(m *testing.M) {
	os.Exit(daemon.Built(func(binary string) int {
		tgtd = binary
		return m.Run()
	}))
}

// TestPage is the check of figures at some moments, with one initiator: the page shows what
// the API tells, with nothing that the browser complains of, and asks nobody else.
func TestPage(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skipf("no browser: %v", err)
	}
	o := options{Tgtd: tgtd, Browser: browser}
	s, err := serve(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() { s.reads(ctx, t) })
	defer stop()
	b, err := open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.end()
	page, err := b.tab(s, 1280, 900, 1)
	if err != nil {
		t.Fatalf("%v; the console: %v", err, page.complaints())
	}
	defer page.end()
	if err := chromedp.Run(page.ctx, chromedp.Evaluate(listen, nil)); err != nil {
		t.Fatal(err)
	}
	compared, moments := 0, map[time.Time]bool{}
	eventually.Holds(t, "the page has shown three moments of work", func() bool {
		var now shown
		if err := chromedp.Run(page.ctx, chromedp.Sleep(100*time.Millisecond), chromedp.Evaluate(read, &now)); err != nil {
			t.Fatal(err)
		}
		if now.Overview.Total.IOPS == 0 || moments[now.Overview.At] {
			return false
		}
		moments[now.Overview.At] = true
		for name, want := range expected(&now.Overview) {
			found, there := now.Figures[name]
			if !there && want != 0 {
				t.Errorf("the page has no %s", name)
			} else if there && off(found, want, name) > mostOff {
				t.Errorf("%s: %v on the page, %v of the API", name, found, want)
			}
			compared++
		}
		return len(moments) >= 3
	})
	for _, column := range []string{"Snapshots", "No CPU"} {
		var there bool
		if err := chromedp.Run(page.ctx, chromedp.Evaluate(`document.querySelector('td[data-name="`+column+`"]') !== null`, &there)); err != nil || !there {
			t.Errorf("the page has no column %s (%v)", column, err)
		}
	}
	if said := page.complaints(); len(said) > 0 {
		t.Errorf("the browser complains: %v", said)
	}
	if elsewhere := page.elsewhere(s); len(elsewhere) > 0 {
		t.Errorf("the page asked for %v", elsewhere)
	}
	if compared < 50 {
		t.Errorf("%d figures were compared", compared)
	}
}

// reads reads until ctx ends.
func (s *served) reads(ctx context.Context, t *testing.T) {
	c, err := initiator.Dial(ctx, s.portal, initiator.Options{Target: target, Initiator: "iqn.2026-11.example:db1"})
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	cdb := make([]byte, 16)
	cdb[0], cdb[13] = 0x88, 8
	for n := uint64(0); ctx.Err() == nil; n++ {
		binary.BigEndian.PutUint64(cdb[2:], n%1024*8)
		if _, err := c.Command(cdb, 0, nil, 4096); err != nil {
			return
		}
	}
}
