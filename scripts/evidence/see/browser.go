package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a headless Chromium.
type browser struct {
	ctx context.Context
	end func()
}

func open(ctx context.Context, o options) (*browser, error) {
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(o.Browser), chromedp.NoSandbox, chromedp.Flag("ignore-certificate-errors", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"))
	started, stop := chromedp.NewExecAllocator(ctx, flags...)
	shown, leave := chromedp.NewContext(started)
	b := &browser{shown, func() { leave(); stop() }}
	if err := chromedp.Run(shown); err != nil { // it is there from now on
		b.end()
		return nil, err
	}
	return b, nil
}

// tab is a page of its own, whose storage no other has, and what it has asked for and
// complained of.
type tab struct {
	ctx context.Context
	end func()

	mu    sync.Mutex
	asked []string // addresses
	said  []string // errors and warnings of its console
}

// tab opens the page of a server and signs in.
func (b *browser) tab(s *served, width, height int64, scale float64) (*tab, error) {
	t := &tab{}
	t.ctx, t.end = chromedp.NewContext(b.ctx)
	chromedp.ListenTarget(t.ctx, t.heard)
	err := chromedp.Run(t.ctx, network.Enable(), log.Enable(), runtime.Enable(), chromedp.EmulateViewport(width, height, chromedp.EmulateScale(scale)),
		chromedp.Navigate(s.url+"/"), chromedp.SendKeys("#token", s.token+"\r", chromedp.ByID), chromedp.WaitVisible("#answers", chromedp.ByID))
	return t, err
}

// openPage serves initiators at work and opens the page of that server; end ends all.
func openPage(ctx context.Context, o options) (s *served, t *tab, end func(), err error) {
	var ends []func()
	end = func() {
		for _, one := range slices.Backward(ends) {
			one()
		}
	}
	if s, err = serve(o); err == nil {
		ends = append(ends, s.end)
		err = s.work(ctx, o)
	}
	var b *browser
	if err == nil {
		b, err = open(ctx, o)
	}
	if err == nil {
		ends = append(ends, b.end)
		if t, err = b.tab(s, 1280, 900, 1); err != nil {
			err = fmt.Errorf("%w; the console: %v", err, t.complaints())
		}
		ends = append(ends, t.end)
	}
	if err != nil {
		end()
	}
	return s, t, end, err
}

func (t *tab) heard(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		t.asked = append(t.asked, e.Request.URL)
	case *log.EventEntryAdded:
		t.said = append(t.said, fmt.Sprint(e.Entry.Level, ": ", e.Entry.Text, " ", e.Entry.URL))
	case *runtime.EventExceptionThrown:
		t.said = append(t.said, "exception: "+e.ExceptionDetails.Error())
	}
}

// elsewhere are addresses that the page asked for of anybody but the server, or with a
// token in them.
func (t *tab) elsewhere(s *served) (out []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, address := range t.asked {
		u, err := url.Parse(address)
		if err != nil || u.Scheme+"://"+u.Host != s.url && u.Scheme != "data" || strings.Contains(address, s.token) {
			out = append(out, address)
		}
	}
	return out
}

func (t *tab) complaints() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.said...)
}

func (t *tab) requests() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.asked)
}
