package top

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"lunar/control"
)

func sample() control.Overview {
	ratio, made := 0.93, time.Date(2026, 11, 26, 2, 0, 0, 0, time.Local)
	recent := []control.OperationQuantile{{Operation: "read", Count: 9, Mean: 0.001, P50: 0.0008, P99: 0.0045}, {Operation: "write", Count: 9, Mean: 0.001, P50: 0.002, P99: 0.003}}
	rates := func(n float64) control.Rates { return control.Rates{IOPS: n, Reads: n, ReadBytes: n * 4096} }
	initiator := func(name string, n float64, bound, promise string) control.SeenInitiator {
		return control.SeenInitiator{Initiator: name, Sessions: 1, Addresses: []string{"192.0.2.1:5000"}, Threads: []string{"event0"}, Volumes: []string{"db"}, Rates: rates(n), Recent: recent,
			InFlight: 3, Window: 128, Bound: bound, Promise: promise, Reserved: 5000, Received: n, Rules: []string{"gold"}}
	}
	return control.Overview{
		At: time.Date(2026, 11, 26, 3, 0, 0, 0, time.Local), Interval: 1, State: "failed", Line: "failed: volume db failed; 1 volume, 3 sessions",
		Answers: []control.Answer{
			{Severity: "failed", Kind: "dirty", About: "db", Initiators: []string{"iqn.a"}, What: "12MiB of volume db are in the cache alone.", Help: "Mend the file or device."},
			{Severity: "missed", Kind: "promise", About: "gold", Initiators: []string{"iqn.b"}, What: "The promise of rule gold to initiator iqn.b is missed.", Help: "A deeper queue."},
		},
		Total:      rates(12345),
		Initiators: []control.SeenInitiator{initiator("iqn.a", 8000, "depth", "kept"), initiator("iqn.b", 4000, "device", "missed"), initiator("iqn.c", 0, "idle", "none")},
		Uses:       []control.SeenUse{{Initiator: "iqn.a", Volume: "db", Rates: rates(8000), Recent: recent, Rules: []string{"gold"}}, {Initiator: "iqn.b", Volume: "db", Rates: rates(4000), Recent: recent, Rules: []string{"gold"}}},
		Volumes:    []control.SeenVolume{{Volume: "db", State: "failed", Failing: true, Wrong: []string{"dirty data cannot be written"}, Device: "sda", Size: 1 << 30, Rates: rates(12000), Recent: recent, Snapshots: &control.VolumeSnapshots{Count: 24, Newest: &made, SharedBytes: 3 << 20, OwnedBytes: 1 << 20, Due: &made, Failed: "no space left on device"}, HitRatio: &ratio, Dirty: 12 << 20, Heat: []uint64{0, 7, 2}}},
		Promises:   []control.SeenPromise{{Rule: "gold", Level: "initiator", Name: "iqn.b", Initiators: []string{"iqn.b"}, Reservation: 5000, Asked: 6000, Served: 4000, State: "missed", MissedOf60: 7, History: []int64{5000, 0, 4000}}},
		Threads:    []control.SeenThread{{Name: "event0", CPU: 1, Node: 0, Connections: 3, Busy: 0.97}},
		Devices:    []control.SeenDevice{{Name: "sda", Volumes: []string{"db"}, Tokens: 48000, Full: true, Rates: rates(12000)}},
		Cache:      &control.SeenCache{Size: 1 << 30, Used: 1 << 29, HitRatio: &ratio, Waiting: 4, Nodes: []control.SeenNode{{Node: 0, Remote: 4096}}},
		Rules:      []control.SeenRule{{Name: "gold", Text: "Initiator iqn.b is promised 5,000 commands per second."}},
		HeatBounds: []float64{0.001, 0.002}, Events: []control.Event{{Time: time.Now(), Kind: "login", Text: "session opened", Fields: map[string]string{"initiator": "iqn.\x1b[31m"}}},
	}
}

// after is the model after messages; strings are keys.
func after(t *testing.T, m model, messages ...any) model {
	t.Helper()
	for _, msg := range messages {
		if key, ok := msg.(string); ok {
			msg = pressed(key)
		}
		next, _ := m.Update(msg)
		m = next.(model)
	}
	return m
}

func pressed(key string) tea.KeyPressMsg {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab, "space": tea.KeySpace, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}
	if code, ok := codes[key]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	return tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
}

func began(t *testing.T) model {
	t.Helper()
	return after(t, newModel(nil, false), tea.WindowSizeMsg{Width: 120, Height: 40}, answer{overview: sample()})
}

func text(m model) string { return strings.Join(m.screen(), "\n") }

// TestPages: what each page shows, and that what is red is on all of them.
func TestPages(t *testing.T) {
	for key, want := range map[string][]string{
		"1": {"INITIATOR", "iqn.a", "8,000", "31.2MiB/s", "4.5ms", "its own depth", "device", "5,000"},
		"2": {"NOT WRITTEN", "93%", "12MiB", "sda", "3ms", "SNAPSHOTS", "24, FAILED"},
		"3": {"READ-P99", "WRITE-P99", "gold"},
		"4": {"missed", "4,000", "6,000", "█▁▆", "Initiator iqn.b is promised"},
		"5": {"event0", "97%", "yes", "48,000"},
		"6": {"93% of reads found all they wanted", "4 writes wait", "4KiB/s"},
		"7": {"login: session opened initiator=iqn."},
		"8": {"  Mend the file or device.", "  A deeper queue."},
	} {
		got := text(after(t, began(t), key))
		for _, part := range append(want, "✖ 12MiB of volume db are in the cache alone.", "▼ The promise of rule gold", "12,345 IOPS") {
			if !strings.Contains(got, part) {
				t.Errorf("page %s: found no %q in\n%s", key, part, got)
			}
		}
		if strings.Contains(got, "\x1b[31m") {
			t.Errorf("page %s: a name colours the terminal", key)
		}
	}
}

// TestNamesAreNoCommands: whatever names a server tells, a terminal gets no commands by them.
func TestNamesAreNoCommands(t *testing.T) {
	const command = "\x1b]0;title\a"
	o := sample()
	o.Line, o.Answers[0].What, o.Initiators[0].Addresses, o.Rules[0].Name = command, command, []string{command}, command
	o.Initiators[0].Rules, o.Volumes[0].Device, o.Devices[0].Name, o.Threads[0].Name = []string{command}, command, command, command
	m := after(t, newModel(nil, false), tea.WindowSizeMsg{Width: 120, Height: 40}, answer{overview: o}, tea.KeyPressMsg{})
	for _, keys := range [][]any{{"1"}, {"1", "enter"}, {"2"}, {"2", "enter"}, {"4"}, {"5"}, {"7"}, {"8"}} {
		if shown := text(after(t, m, keys...)); strings.Contains(shown, "\a") || strings.Contains(shown, "\x1b]") {
			t.Errorf("keys %v: the screen has a command in %q", keys, shown)
		}
	}
}

// TestOpen: enter opens what the cursor is on, down to the other side of it, and esc goes
// back to where that was.
func TestOpen(t *testing.T) {
	m := after(t, began(t), "down", "enter")
	if got := text(m); !strings.Contains(got, "rule gold: Initiator iqn.b is promised") || !strings.Contains(got, "▼ The promise") || !strings.Contains(got, "bound by: device") {
		t.Errorf("an initiator: found\n%s", got)
	}
	m = after(t, m, "enter")
	if got := text(m); !strings.Contains(got, "dirty data cannot be written") || !strings.Contains(got, "24 snapshots, the newest of 2026-11-26 02:00:00; 3MiB of the file shared, 1MiB its own") || !strings.Contains(got, "was not made: no space left") || !strings.Contains(got, "< 2ms        7 ██████████████████████████████") {
		t.Errorf("its volume: found\n%s", got)
	}
	m = after(t, m, "esc", "esc")
	if m.key != initiatorKey+"iqn.b" || m.cursor != 1 || len(m.opened) != 0 {
		t.Errorf("back: the cursor is on %q", m.key)
	}
	gone := sample()
	gone.Initiators = gone.Initiators[:1]
	m = after(t, m, "enter", answer{overview: gone})
	if got := text(m); !strings.Contains(got, "iqn.b is not there any more") {
		t.Errorf("gone: found\n%s", got)
	}
}

// TestOrder: columns sort, the cursor stays on its row, and the server's order comes back.
func TestOrder(t *testing.T) {
	m := after(t, began(t), "down", "s", "r") // by name, the other way round
	if s := m.rows(); s.rows[0][0] != "iqn.a" || s.sorted != 0 {
		t.Errorf("by name: found %v", s.rows)
	}
	m = after(t, m, "s", "r") // by IOPS, fewest first
	if s := m.rows(); s.rows[0][0] != "iqn.c" || m.cursor != 1 || !strings.Contains(text(m), "IOPS↓") {
		t.Errorf("by IOPS: found %v, the cursor at %d", s.rows, m.cursor)
	}
	other := sample()
	other.Initiators[1].IOPS = 9000
	m = after(t, m, answer{overview: other})
	if m.cursor != 2 || m.key != initiatorKey+"iqn.b" {
		t.Errorf("the row has moved: the cursor at %d, on %q", m.cursor, m.key)
	}
	for range len(initiatorTable) - 1 {
		m = after(t, m, "s")
	}
	if m.orders[0].column != "" {
		t.Errorf("behind the last column: found %q", m.orders[0].column)
	}
}

// TestFilter: only rows with what was typed are shown, also on other pages, and esc shows all.
func TestFilter(t *testing.T) {
	m := after(t, began(t), "/", "I", "q", "n", ".", "b")
	if got := text(m); !strings.Contains(got, "filter: Iqn.b") || len(m.rows().rows) != 1 || m.key != initiatorKey+"iqn.b" {
		t.Errorf("typed: found %v\n%s", m.rows().rows, got)
	}
	m = after(t, m, "backspace", "q", "backspace", "c", "enter", "3") // q is a letter while a filter is typed
	if got := text(m); m.typing || m.filter != "Iqn.c" || len(m.rows().rows) != 0 || !strings.Contains(got, "only what has Iqn.c, esc shows all") || !strings.Contains(got, "none") {
		t.Errorf("kept: found %q\n%s", m.filter, got)
	}
	if m = after(t, m, "esc"); len(m.rows().rows) != 2 {
		t.Errorf("all: found %v", m.rows().rows)
	}
	if m = after(t, m, "/", "z", "enter", "7"); strings.Contains(text(m), "login") {
		t.Errorf("events: found\n%s", text(m))
	}
}

// TestPause: what is shown stays; an error is told, with the old figures.
func TestPause(t *testing.T) {
	other := sample()
	other.Total.IOPS = 7
	m := after(t, began(t), "space", answer{overview: other})
	if got := text(m); !strings.Contains(got, "12,345 IOPS") || !strings.Contains(got, "paused") {
		t.Errorf("paused: found\n%s", got)
	}
	m = after(t, m, "p", answer{overview: other}, answer{err: errors.New("connection refused")})
	if got := text(m); !strings.Contains(got, "7 IOPS") || !strings.Contains(got, "the figures are old: connection refused") {
		t.Errorf("goes on: found\n%s", got)
	}
	if got := text(after(t, newModel(nil, false), answer{err: errors.New("refused")})); !strings.Contains(got, "no answer: refused") {
		t.Errorf("never an answer: found\n%s", got)
	}
}

// TestSizes: on a terminal of any size every line fits, and the cursor's row is seen.
func TestSizes(t *testing.T) {
	o := sample()
	for i := range 50 {
		more := o.Initiators[0]
		more.Initiator = "iqn.2026-11.example.of.a.long.name:" + strings.Repeat("x", i)
		o.Initiators = append(o.Initiators, more)
	}
	for _, width := range []int{1, 20, 40, 80, 200} {
		for _, height := range []int{1, 5, 10, 24, 60} {
			for _, keys := range [][]any{{}, {"end"}, {"end", "enter"}, {"2", "enter"}, {"8"}, {"?"}, {"4"}, {"7", "down", "down"}, {"/", "x"}} {
				m := after(t, after(t, newModel(nil, false), tea.WindowSizeMsg{Width: width, Height: height}, answer{overview: o}), keys...)
				lines := m.screen()
				if len(lines) > height {
					t.Fatalf("%dx%d %v: found %d lines", width, height, keys, len(lines))
				}
				for _, line := range lines {
					if n := utf8.RuneCountInString(plainText(line)); n > width {
						t.Fatalf("%dx%d %v: found %d columns: %q", width, height, keys, n, line)
					}
				}
				if len(keys) == 1 && keys[0] == "end" && height >= 10 && width >= 20 && !strings.Contains(strings.Join(lines, "\n"), "\x1b[7m…") && width < 60 {
					t.Errorf("%dx%d: the cursor is not on the screen\n%s", width, height, strings.Join(lines, "\n"))
				}
			}
		}
	}
}

// plainText is a line without its graphics.
func plainText(line string) string {
	for _, codes := range graphics {
		for _, code := range codes {
			line = strings.ReplaceAll(line, "\x1b["+code+"m", "")
		}
	}
	return strings.ReplaceAll(line, "\x1b[0m", "")
}

// TestColours: there are none without colours, and the same words with them.
func TestColours(t *testing.T) {
	with := after(t, newModel(nil, true), answer{overview: sample()})
	without := after(t, newModel(nil, false), answer{overview: sample()})
	if a, b := plainText(text(with)), plainText(text(without)); a != b {
		t.Errorf("found\n%s\nand\n%s", a, b)
	}
	if strings.Contains(text(without), "[3") || !strings.Contains(text(with), "\x1b[1;31m✖") {
		t.Errorf("found %q", text(without))
	}
}

// TestOnce: the text has what the pages have.
func TestOnce(t *testing.T) {
	var out bytes.Buffer
	o := sample()
	if err := Once(&out, &o); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"failed: volume db failed", "✖ 12MiB", "  Mend the file", "BOUND-BY", "WRITE-P99", "LAST-SECONDS", "event0", "48,000", "CACHE\nused      512MiB", "FORWARDED"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("found no %q in\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("it has control characters")
	}
}
