package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"lunar/scripts/evidence/notes"
)

// violation is what axe finds.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target []string
		HTML   string
	}
}

// accessible looks at the page with axe, in light and dark, and when something is open; and
// opens that by the keyboard alone.
func accessible(ctx context.Context, o options) (facts, error) {
	if o.Axe == "" {
		return facts{notes.Found("axe", "not run: no axe.min.js was given", true)}, nil
	}
	axe, err := os.ReadFile(o.Axe)
	if err != nil {
		return nil, err
	}
	_, t, end, err := openPage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer end()
	// The page's policy lets no other script in, which is what it is for: for axe it is off.
	if err := chromedp.Run(t.ctx, page.SetBypassCSP(true), chromedp.Reload(), chromedp.WaitVisible("#answers", chromedp.ByID), chromedp.Evaluate(string(axe)+";0", nil), chromedp.Sleep(3*time.Second)); err != nil {
		return nil, err
	}
	found := facts{}
	look := func(name string, do ...chromedp.Action) error {
		var all []violation
		do = append(do, chromedp.Sleep(time.Second), chromedp.Evaluate(`axe.run().then((r) => r.violations)`, &all, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if err := chromedp.Run(t.ctx, do...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var texts []string
		for _, v := range all {
			where := ""
			if len(v.Nodes) > 0 {
				where = strings.Join(v.Nodes[0].Target, " ")
			}
			texts = append(texts, fmt.Sprintf("%s (%s, %d times, `%s`)", v.ID, v.Impact, len(v.Nodes), where))
		}
		found = append(found, notes.Found("violations that axe finds, "+name, strings.TrimSpace(fmt.Sprint(len(all), " ", strings.Join(texts, "; "))), len(all) == 0))
		return nil
	}
	scheme := func(name string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}})
	}
	if err := look("light", scheme("light")); err != nil {
		return nil, err
	}
	if err := look("dark", scheme("dark")); err != nil {
		return nil, err
	}
	var opened bool
	if err := chromedp.Run(t.ctx, chromedp.Focus("#table-initiators tbody button", chromedp.ByQuery), chromedp.KeyEvent("\r"), chromedp.Sleep(time.Second), chromedp.Evaluate(`document.getElementById('opened').open`, &opened)); err != nil {
		return nil, err
	}
	found = append(found, notes.Found("an initiator opens by the keyboard", fmt.Sprint(opened), opened))
	if err := look("with an initiator open"); err != nil {
		return nil, err
	}
	if err := chromedp.Run(t.ctx, chromedp.KeyEvent("\x1b"), chromedp.Sleep(500*time.Millisecond), chromedp.Evaluate(`document.getElementById('opened').open`, &opened)); err != nil {
		return nil, err
	}
	found = append(found, notes.Found("escape closes it", fmt.Sprint(!opened), !opened))
	if err := look("where the token is asked for", chromedp.Evaluate(`[...document.querySelectorAll('button')].find((b) => b.textContent === 'Sign out').click()`, nil)); err != nil {
		return nil, err
	}
	var kept int
	if err := chromedp.Run(t.ctx, chromedp.Evaluate(`sessionStorage.length + localStorage.length + document.cookie.length`, &kept)); err != nil {
		return nil, err
	}
	return append(found, notes.Found("what the browser keeps after signing out", fmt.Sprint(kept), kept == 0)), nil
}
