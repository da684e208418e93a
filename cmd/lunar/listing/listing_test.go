package listing

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

type disk struct {
	name  string
	size  int64
	hits  any
	ok    bool
	since time.Time
	who   []string
}

var disks = []disk{
	{"db", 2 << 40, Share(0.9), true, time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC), []string{"a", "b"}},
	{"Scratch", 1 << 30, nil, false, time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC), nil},
	{"i[s]o\x1b", 1023, Share(0.25), true, time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC), []string{"c"}},
}

var table = Table[disk]{
	{Name: "name", Of: func(d *disk) any { return d.name }},
	{Name: "size", Of: func(d *disk) any { return Bytes(d.size) }, Counts: true},
	{Name: "hits", Of: func(d *disk) any { return d.hits }},
	{Name: "ok", Of: func(d *disk) any { return d.ok }},
	{Name: "since", Of: func(d *disk) any { return d.since }, Wide: true},
	{Name: "who", Of: func(d *disk) any { return d.who }, Wide: true},
}

// TestSelect: which rows conditions leave, and in what order.
func TestSelect(t *testing.T) {
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{}, "db Scratch i[s]o\x1b"},
		{Options{Reverse: true}, "i[s]o\x1b Scratch db"},
		{Options{Sort: "name"}, "db i[s]o\x1b Scratch"},
		{Options{Sort: "SIZE"}, "i[s]o\x1b Scratch db"},
		{Options{Sort: "size", Reverse: true}, "db Scratch i[s]o\x1b"},
		{Options{Sort: "hits"}, "Scratch i[s]o\x1b db"},
		{Options{Sort: "since"}, "Scratch db i[s]o\x1b"},
		{Options{Filter: []string{"name=*S*"}}, "Scratch i[s]o\x1b"},
		{Options{Filter: []string{"name=i[s]?*"}}, "i[s]o\x1b"},
		{Options{Filter: []string{"name!=db", "ok=yes"}}, "i[s]o\x1b"},
		{Options{Filter: []string{"size>1KiB"}}, "db Scratch"},
		{Options{Filter: []string{"size<=1023B"}}, "i[s]o\x1b"},
		{Options{Filter: []string{"hits>=90%"}}, "db"},
		{Options{Filter: []string{"hits<1"}}, "db i[s]o\x1b"},
		{Options{Filter: []string{"hits=-"}}, "Scratch"},
		{Options{Filter: []string{"who=a, b"}}, "db"},
		{Options{Filter: []string{"name=nothing"}}, ""},
	} {
		rows, err := table.Select(disks, &test.o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range rows {
			names = append(names, d.name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%+v: found %q, expected %q", test.o, got, test.want)
		}
	}
}

// TestMistakes: what is wrong is told with what would be right.
func TestMistakes(t *testing.T) {
	for text, o := range map[string]Options{
		`--sort: found "nme", expected one of the columns name, size`: {Sort: "nme"},
		`--filter: found "x", expected one of the columns`:            {Filter: []string{"x=1"}},
		`--filter: found "name", expected COLUMN=PATTERN`:             {Filter: []string{"name"}},
		`--filter: found "size>large", expected a number behind >`:    {Filter: []string{"size>large"}},
		`--columns: found "all", expected one of the columns name`:    {Columns: []string{"name", "all"}},
	} {
		_, err := table.Select(disks, &o)
		if err == nil {
			err = table.Write(&bytes.Buffer{}, disks, &o)
		}
		var m *Mistake
		if !errors.As(err, &m) || !strings.Contains(fmt.Sprint(err), text) {
			t.Errorf("%+v: found %v, expected %s", o, err, text)
		}
	}
}

// TestWrite: heads, wide columns, rates, and nothing that changes a terminal.
func TestWrite(t *testing.T) {
	for want, o := range map[string]Options{
		"NAME     SIZE   HITS   OK\ndb       2TiB   90.0%  yes\nScratch  1GiB   -      no\ni[s]o�   1023B  25.0%  yes\n": {},
		"NAME     SIZE/s\ndb       2TiB\nScratch  1GiB\ni[s]o�   1023B\n":                                                {Columns: []string{"Name", "size"}, Per: "/s"},
		"db\nScratch\ni[s]o�\n": {Columns: []string{"name"}, NoHeader: true},
		"NAME     SIZE   HITS   OK   SINCE                WHO\ndb       2TiB   90.0%  yes  2026-11-25 03:00:00  a, b\n" +
			"Scratch  1GiB   -      no   2026-11-24 03:00:00  -\ni[s]o�   1023B  25.0%  yes  2026-11-26 03:00:00  c\n": {Wide: true},
	} {
		var out bytes.Buffer
		if err := table.Write(&out, disks, &o); err != nil || out.String() != want {
			t.Errorf("%+v: found %v\n%s\nexpected\n%s", o, err, out.String(), want)
		}
	}
}
