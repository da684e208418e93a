package top

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"lunar/cmd/lunar/clustertable"
	"lunar/control"
)

// interval is how often the server is asked.
const interval = time.Second

// model is the state of the screen.
type model struct {
	ask     func() tea.Msg // asks the server; an answer
	painter painter

	width, height int
	overview      *control.Overview // nil: there is none yet
	err           error             // of the last time
	paused, help  bool
	filter        string // rows without it are not shown; empty: all are
	typing        bool   // it is being typed

	page   int
	opened []string      // what was opened of it: keys of rows, the last one is shown
	orders map[int]order // of pages
	cursor int           // row of the first sheet
	key    string        // of that row, which keeps the cursor
	scroll int           // lines that are above the screen
}

// answer is what the server has told.
type answer struct {
	overview control.Overview
	err      error
}

// due is when it is to be asked again.
type due struct{}

func newModel(ask func() tea.Msg, colours bool) model {
	return model{ask: ask, painter: painter{colours}, width: 80, height: 24, orders: map[int]order{}}
}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return m.ask }

// Update implements tea.Model.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case answer:
		if m.err = msg.err; msg.err == nil && !m.paused {
			m.overview = &msg.overview
		}
		m.follow()
		return m, tea.Tick(interval, func(time.Time) tea.Msg { return due{} })
	case due:
		return m, m.ask
	case tea.KeyPressMsg:
		return m.pressed(msg)
	}
	return m, nil
}

// keys are what keys do.
var keys = map[string]func(*model){
	"p": func(m *model) { m.paused = !m.paused }, "space": func(m *model) { m.paused = !m.paused },
	"?": func(m *model) { m.help = !m.help }, "h": func(m *model) { m.help = !m.help },
	"tab": func(m *model) { m.turn(1) }, "right": func(m *model) { m.turn(1) }, "shift+tab": func(m *model) { m.turn(-1) }, "left": func(m *model) { m.turn(-1) },
	"up": func(m *model) { m.move(-1) }, "k": func(m *model) { m.move(-1) }, "down": func(m *model) { m.move(1) }, "j": func(m *model) { m.move(1) },
	"pgup": func(m *model) { m.move(-m.height / 2) }, "pgdown": func(m *model) { m.move(m.height / 2) },
	"home": func(m *model) { m.move(-1 << 30) }, "end": func(m *model) { m.move(1 << 30) },
	"/": func(m *model) { m.typing, m.opened = true, nil }, "enter": (*model).open, "esc": (*model).back, "backspace": (*model).back,
	"s": func(m *model) { m.sort(1) }, "S": func(m *model) { m.sort(-1) }, "r": (*model).reverse,
}

func (m model) pressed(msg tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	key := msg.String()
	if key == "q" && !m.typing || key == "ctrl+c" {
		return m, tea.Quit
	}
	if m.typing {
		m.typed(key, msg.Text)
		return m, nil
	}
	if n, err := strconv.Atoi(key); err == nil && n >= 1 && n <= len(shown(m.overview)) {
		m.show(n - 1)
	} else if do := keys[key]; do != nil {
		do(&m)
	}
	return m, nil
}

// show goes to a page.
func (m *model) show(page int) {
	m.page, m.opened, m.help = page, nil, false
	m.cursor, m.key, m.scroll = 0, "", 0
	m.keep()
}

func (m *model) turn(by int) {
	n := len(shown(m.overview))
	m.show((m.page + by + n) % n)
}

// typed changes the filter by a key.
func (m *model) typed(key, text string) {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.filter, m.typing = "", false
	case "backspace":
		if all := []rune(m.filter); len(all) > 0 {
			m.filter = string(all[:len(all)-1])
		}
	default:
		m.filter += strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, text)
	}
	m.cursor, m.key, m.scroll = 0, "", 0
	m.keep()
}

// shown is what the screen shows of the overview.
func (m *model) shown() part {
	if m.overview == nil {
		return part{}
	}
	if n := len(m.opened); n > 0 {
		return detail(m.overview, m.opened[n-1], m.orders[len(pages)])
	}
	return pages[m.page].part(m.overview, m.orders[m.page]).only(m.filter)
}

// rows is the sheet with the cursor; nil: there is none.
func (m *model) rows() *sheet {
	if p := m.shown(); len(p.sheets) > 0 {
		return &p.sheets[0]
	}
	return nil
}

// move moves the cursor, or the page if it has none.
func (m *model) move(by int) {
	s := m.rows()
	if s == nil || len(s.rows) == 0 {
		m.scroll = max(0, m.scroll+max(by, -m.scroll))
		return
	}
	m.cursor = min(max(0, m.cursor+by), len(s.rows)-1)
	m.keep()
}

// keep notes what the cursor is on.
func (m *model) keep() {
	if s := m.rows(); s != nil && m.cursor < len(s.keys) {
		m.key = s.keys[m.cursor]
	}
}

// follow has the cursor where its row is now.
func (m *model) follow() {
	s := m.rows()
	if s == nil {
		return
	}
	m.cursor = max(0, min(m.cursor, len(s.rows)-1))
	for i, key := range s.keys {
		if m.key != "" && key == m.key {
			m.cursor = i
			return
		}
	}
	m.keep()
}

// open shows what the cursor is on.
func (m *model) open() {
	if s := m.rows(); s != nil && m.cursor < len(s.keys) && s.keys[m.cursor] != "" {
		m.opened = append(m.opened[:len(m.opened):len(m.opened)], s.keys[m.cursor])
		m.cursor, m.key, m.scroll = 0, "", 0
		m.keep()
	}
}

// back ends help, goes back to where something was opened, or shows all rows again.
func (m *model) back() {
	switch n := len(m.opened); {
	case m.help:
		m.help = false
	case n > 0:
		m.key, m.opened = m.opened[n-1], m.opened[:n-1]
		m.scroll = 0
		m.follow()
	default:
		m.filter = ""
		m.follow()
	}
}

// sorted is the number of what is shown, for its order.
func (m *model) sorted() int {
	if len(m.opened) > 0 {
		return len(pages)
	}
	return m.page
}

// sort takes the next column, or the one before; behind the last one is the server's order.
func (m *model) sort(by int) {
	names := m.columns()
	if names == nil {
		return
	}
	names = append([]string{""}, names...)
	at, o := 0, m.orders[m.sorted()]
	for i, name := range names {
		if name == o.column {
			at = i
		}
	}
	m.arrange(order{column: names[(at+by+len(names))%len(names)]})
}

// columns are what can be sorted by of what is shown; nil: its order has a meaning.
func (m *model) columns() []string {
	switch n := len(m.opened); {
	case n > 0 && strings.HasPrefix(m.opened[n-1], nodeKey):
		return clustertable.Volumes.Names()
	case n > 0:
		return useTable.Names()
	case pages[m.page].columns == nil:
		return nil
	}
	return pages[m.page].columns()
}

func (m *model) reverse() {
	o := m.orders[m.sorted()]
	o.reverse = !o.reverse
	m.arrange(o)
}

// arrange changes the order of what is shown. The model before has another map.
func (m *model) arrange(o order) {
	all := map[int]order{m.sorted(): o}
	for page, other := range m.orders {
		if page != m.sorted() {
			all[page] = other
		}
	}
	m.orders = all
	m.follow()
}
