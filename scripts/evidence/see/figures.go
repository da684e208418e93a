package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"lunar/control"
	"lunar/scripts/evidence/notes"
)

// mostOff is how far a figure may be from that of the API, in parts.
const mostOff = 0.02

// shown is what the page shows at a moment: the overview that it has, and its figures as
// numbers. Units are taken back out of the text, so that what is compared is what people
// read.
type shown struct {
	Overview control.Overview
	Figures  map[string]float64
}

// read is a function of the page that gives what it shows. The overview is the one that the
// page's own request got: the browser hands the text to both.
const read = `(() => {
  const factors = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, 'µs': 1e-6, ms: 1e-3, s: 1, '%': 0.01 };
  const number = (text) => {
    const m = text.replace(/,/g, '').match(/(-?[\d.]+)\s*(KiB|MiB|GiB|B|µs|ms|s|%)?(\/s)?/);
    return m ? Number(m[1]) * (m[2] ? factors[m[2]] : 1) : NaN;
  };
  const figures = {};
  for (const e of document.querySelectorAll('.tiles [data-figure]')) figures['total ' + e.dataset.figure] = number(e.textContent);
  for (const table of document.querySelectorAll('main table')) {
    for (const row of table.querySelectorAll('tbody tr')) {
      const name = row.querySelector('th') ? row.querySelector('th').textContent.trim() : '';
      for (const cell of row.querySelectorAll('td[data-name]')) figures[table.id + ' ' + name + ' ' + cell.dataset.name] = number(cell.textContent);
    }
  }
  document.querySelectorAll('.promises li').forEach((li) => {
    const name = li.querySelector('.who strong').textContent.trim();
    for (const e of li.querySelectorAll('[data-figure]')) figures['promise ' + name + ' ' + e.dataset.figure] = number(e.textContent);
  });
  for (const [k, v] of Object.entries(figures)) if (Number.isNaN(v)) delete figures[k];
  return { Overview: window.lastOverview, Figures: figures };
})()`

// listen keeps the overview that the page has got last where read finds it. It stands
// between fetch and the page, and changes nothing.
const listen = `(() => {
  const real = window.fetch;
  window.fetch = async (...a) => {
    const answer = await real(...a);
    const copy = answer.clone();
    if (answer.ok) { const o = await copy.json(); setTimeout(() => { window.lastOverview = o; }, 0); }
    return answer;
  };
})()`

// expected are the figures that the API gives the page's names.
func expected(o *control.Overview) map[string]float64 {
	all := map[string]float64{"total iops": o.Total.IOPS, "total read": o.Total.ReadBytes, "total written": o.Total.WrittenBytes}
	busy := 0.
	for _, t := range o.Threads {
		busy = max(busy, t.Busy)
		all["table-threads "+t.Name+" Busy"] = t.Busy
	}
	all["total busy"] = busy
	rates := func(table, name string, r *control.Rates, recent []control.OperationQuantile) {
		all[table+" "+name+" IOPS"], all[table+" "+name+" Read"], all[table+" "+name+" Written"] = r.IOPS, r.ReadBytes, r.WrittenBytes
		for _, q := range recent {
			before := table + " " + name + " " + map[string]string{"read": "Read ", "write": "Write "}[q.Operation]
			if table == "table-initiators" { // it has the longest of all operations
				before = table + " " + name + " "
			} else if q.Operation == "other" {
				continue
			}
			all[before+"p50"], all[before+"p99"] = max(all[before+"p50"], q.P50), max(all[before+"p99"], q.P99)
		}
	}
	for i := range o.Initiators {
		v := &o.Initiators[i]
		rates("table-initiators", v.Initiator, &v.Rates, v.Recent)
		all["table-initiators "+v.Initiator+" Received"], all["table-initiators "+v.Initiator+" Held back"] = v.Received, v.Throttled
	}
	for i := range o.Volumes {
		v := &o.Volumes[i]
		rates("table-volumes", v.Volume, &v.Rates, v.Recent)
		all["table-volumes "+v.Volume+" Dirty"] = float64(v.Dirty)
	}
	for i := range o.Devices {
		d := &o.Devices[i]
		rates("table-devices", d.Name, &d.Rates, nil)
	}
	for _, p := range o.Promises {
		all["promise "+p.Level+" "+p.Name+" served"], all["promise "+p.Level+" "+p.Name+" promised"] = float64(p.Served), float64(p.Reservation)
	}
	return all
}

// off is how far a figure that people read is from that of the API, in parts. What rounding
// to three digits, a whole number or a whole percent does is no difference.
func off(found, want float64, name string) float64 {
	rounding := 0.5
	switch {
	case strings.HasSuffix(name, "Busy"), strings.HasSuffix(name, "busy"), strings.HasSuffix(name, "Held back"):
		rounding = 0.005
	case strings.Contains(name, "p50"), strings.Contains(name, "p99"):
		rounding = 1e-9
	}
	difference := math.Abs(found - want)
	if difference <= rounding || want == 0 {
		if difference <= rounding {
			return 0
		}
		return 1
	}
	return difference / want
}

const (
	moments = 20
	settles = 15 * time.Second
)

// figures compares what a page shows with what the API has said, takes the pictures, and
// looks at what the page asks for.
func figures(ctx context.Context, o options) (facts, error) {
	s, t, end, err := openPage(ctx, o)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := chromedp.Run(t.ctx, chromedp.Evaluate(listen, nil), chromedp.Sleep(settles)); err != nil {
		return nil, err
	}
	compared, worst, at := 0, 0., ""
	var missing []string
	for range moments {
		var now shown
		if err := chromedp.Run(t.ctx, chromedp.Sleep(1100*time.Millisecond), chromedp.Evaluate(read, &now)); err != nil {
			return nil, err
		}
		for name, want := range expected(&now.Overview) {
			found, there := now.Figures[name]
			if !there {
				if want != 0 {
					missing = append(missing, name)
				}
				continue
			}
			compared++
			if d := off(found, want, name); d > worst {
				worst, at = d, fmt.Sprintf(" (%s: %v on the page, %v of the API)", name, found, want)
			}
		}
	}
	other, err := s.beside(ctx, t)
	if err != nil {
		return nil, err
	}
	pictures, err := t.pictures(s, o)
	if err != nil {
		return nil, err
	}
	said := t.complaints()
	elsewhere := t.elsewhere(s)
	return facts{
		notes.Found("figures compared at 20 moments", fmt.Sprint(compared), compared > 500),
		notes.Found("the farthest from the API's answer that it shows", fmt.Sprintf("%.2f %%%s", 100*worst, at), worst <= mostOff),
		notes.Found("figures of the API that the page has not", fmt.Sprintf("%d %s", len(missing), strings.Join(missing[:min(len(missing), 3)], ", ")), len(missing) == 0),
		notes.Found("total IOPS on the page, and of counters of /v1/status over the same ten seconds", other.text, other.off <= mostOff),
		notes.Found("requests of the page, and of them to anywhere else or with the token in the address", fmt.Sprintf("%d, %d", t.requests(), len(elsewhere)), len(elsewhere) == 0),
		notes.Found("errors and warnings of the browser, such as of the Content-Security-Policy", fmt.Sprint(len(said), " ", strings.Join(said, "; ")), len(said) == 0),
		notes.Found("pictures", pictures, true),
	}, nil
}

type beside struct {
	text string
	off  float64
}

// beside compares the page with the counters that the overview is made of, but taken by
// itself: the mean of what it shows for ten seconds.
func (s *served) beside(ctx context.Context, t *tab) (out beside, err error) {
	count := func() (n uint64, at float64, err error) {
		status, err := s.api.Status(ctx)
		for i := range status.Volumes {
			io := &status.Volumes[i].IO
			n += io.Reads + io.Writes + io.Others
		}
		return n, status.Server.UptimeSeconds, err
	}
	first, from, err := count()
	if err != nil {
		return out, err
	}
	sum, n := 0., 0
	for range 10 {
		var now shown
		if err := chromedp.Run(t.ctx, chromedp.Sleep(time.Second), chromedp.Evaluate(read, &now)); err != nil {
			return out, err
		}
		sum, n = sum+now.Figures["total iops"], n+1
	}
	last, to, err := count()
	if err != nil {
		return out, err
	}
	page, counters := sum/float64(n), float64(last-first)/(to-from)
	out.off = math.Abs(page-counters) / counters
	out.text = fmt.Sprintf("%.0f and %.0f: %.2f %% apart", page, counters, 100*out.off)
	return out, nil
}

// pictures takes them in light and dark, on a screen and on a phone, of the page and of what
// opens.
func (t *tab) pictures(s *served, o options) (string, error) {
	if err := os.MkdirAll(o.Pictures, 0o755); err != nil {
		return "", err
	}
	scheme := func(name string) chromedp.Action {
		return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}})
	}
	var taken []string
	for _, p := range []struct {
		name string
		do   []chromedp.Action
	}{
		{"light", []chromedp.Action{scheme("light"), chromedp.Sleep(2 * time.Second)}},
		{"dark", []chromedp.Action{scheme("dark"), chromedp.Evaluate(`document.getElementById('latency').scrollIntoView()`, nil), chromedp.Sleep(2 * time.Second)}},
		{"opened", []chromedp.Action{scheme("light"), chromedp.Click(`#table-initiators tbody button`, chromedp.ByQuery), chromedp.Sleep(2 * time.Second)}},
		{"phone", []chromedp.Action{scheme("dark"), chromedp.KeyEvent("\x1b"), chromedp.EmulateViewport(390, 844), chromedp.Evaluate(`scrollTo(0, 0)`, nil), chromedp.Sleep(2 * time.Second)}},
		{"red", []chromedp.Action{chromedp.EmulateViewport(1280, 900), scheme("light"), chromedp.ActionFunc(s.trouble), chromedp.Sleep(6 * time.Second)}},
	} {
		var png []byte
		if err := chromedp.Run(t.ctx, append(p.do, chromedp.CaptureScreenshot(&png))...); err != nil {
			return "", fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(o.Pictures, p.name+".png"), png, 0o644); err != nil {
			return "", err
		}
		taken = append(taken, fmt.Sprintf("%s.png %d KiB", p.name, len(png)>>10))
	}
	return strings.Join(taken, ", "), nil
}
