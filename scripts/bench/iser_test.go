package main

import (
	"strings"
	"testing"
)

const iserSaid = `+ a command of the scenario
counters sends posts
sample 1 read-4k lunar-iser 1000000 200 10 40
counted read-4k 200 10 5 210 55
sample 1 read-4k tgt-iser 1000000 100 20 40
sample 1 read-4k lio-iser 2000000 400 0 40
sample 2 read-4k lunar-iser 1000000 300 10 30
counted read-4k 100 0 0 100 50
sample 2 read-4k tgt-iser 1000000 100 10 30
sample 2 read-4k lio-iser 1000000 600 0 60
`

func TestISERTables(t *testing.T) {
	r, err := parseISER(iserSaid)
	if err != nil {
		t.Fatal(err)
	}
	for what, test := range map[string]struct{ found, expected string }{
		"rates":  {r.rates(), "| 4 KiB random read, depth 32 | 2.50 | 0.75 | – | – | – | **no** |"},
		"server": {r.costs(), "| 4 KiB random read, depth 32, server process | 0.29 | – | – | – | – |"},
		"guest":  {r.costs(), "| 4 KiB random read, depth 32, whole guest | 0.42 | 1.50 | – | – | – |"},
		"counts": {r.countTable(), "| 4 KiB random read, depth 32 | 1.00 | 0.38 | 1.00 |"},
	} {
		if !strings.Contains(test.found, test.expected) {
			t.Errorf("%s: found\n%s\nexpected among it %q", what, test.found, test.expected)
		}
	}
}

func TestISERRefusesWhatIsNoResult(t *testing.T) {
	for _, text := range []string{"", "sample 1 read-4k lunar-iser 1000000 0 1 1", "sample 1 read-4k lunar-iser 1 2 3", "counters a\ncounted read-4k 5 1"} {
		if _, err := parseISER(text); err == nil {
			t.Errorf("%q was taken, expected an error", text)
		}
	}
}

func TestISERRunsWhatIsAskedFor(t *testing.T) {
	all := "5 2 read-4k,write-4k,read-256k,write-256k lunar-iser,tgt-iser,lio-iser,lunar-tcp,tgt-tcp,lio-tcp"
	if found := (&iserCommand{Seconds: 2}).arguments(5, nil); found != all {
		t.Errorf("found %q, expected %q", found, all)
	}
	part := "9 1 write-4k lunar-iser,tgt-iser"
	if found := (&iserCommand{Seconds: 1, Others: []string{"tgt-iser"}}).arguments(9, []string{"write-4k"}); found != part {
		t.Errorf("found %q, expected %q", found, part)
	}
}

const promisedSaid = `reserved 1 4 600
promised 1 alone-4 gold 1000 100 200 4096000
promised 1 bare-4 gold 300 400 2000 1228800
promised 1 bare-4 hog1 1000 900 4000 4096000
promised 1 bare-4 hog2 700 900 4000 2867200
promised 1 ruled-4 gold 800 120 500 3276800
promised 1 ruled-4 hog1 600 900 4000 2457600
promised 1 ruled-4 hog2 500 900 4000 2048000
`

func TestPromisesOverISER(t *testing.T) {
	s, err := parsePromised(promisedSaid)
	if err != nil {
		t.Fatal(err)
	}
	found := saturationTable(iserSaturations(s), s)
	if expected := "| 1000 | 100, 200 | 300 | 400, 2000 | 800 | 120, 500 | 2.5 | 95 % | – | ≥ 300, p99 ≤ 3×, all ≥ 90 % | yes |"; !strings.Contains(found, expected) {
		t.Errorf("found\n%s\nexpected among it %q", found, expected)
	}
	for _, text := range []string{"", "promised 1 alone-4 gold", "promised 2 alone-4 gold 1 1 1 1", "promised 1 other-4 gold 1 1 1 1", "promised 1 alone-4 gold x 1 1 1"} {
		if _, err := parsePromised(text); err == nil {
			t.Errorf("%q was taken, expected an error", text)
		}
	}
}
