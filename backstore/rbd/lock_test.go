package rbd

import (
	"strings"
	"testing"
)

// TestJudge: an owner that is alive keeps its lock, but for this server's last process.
func TestJudge(t *testing.T) {
	const a, b = "192.0.2.1:0/11", "192.0.2.2:0/22"
	for name, c := range map[string]struct {
		scene
		want    verdict
		crashed bool
		why     string
	}{
		"new":                         {scene: scene{}, want: acquire},
		"closed in order":             {scene: scene{watchers: []string{b}}, want: acquire},
		"own crash":                   {scene: scene{owner: a, watchers: []string{a}, noted: owned{"me", "v2:" + a}}, want: seize, crashed: true},
		"own crash, forgotten":        {scene: scene{owner: a, noted: owned{"me", a}}, want: seize, crashed: true},
		"own crash, lock freed":       {scene: scene{noted: owned{"me", a}}, want: acquire, crashed: true},
		"another server, alive":       {scene: scene{owner: b, watchers: []string{b}, noted: owned{"you", b}}, why: "the Lunar server you has it open at " + b},
		"another server, dead":        {scene: scene{owner: b, noted: owned{"you", b}}, want: seize},
		"another client, alive":       {scene: scene{owner: b, watchers: []string{"any:" + b}}, why: "another client has it open"},
		"another after own crash":     {scene: scene{owner: b, watchers: []string{b}, noted: owned{"me", a}}, crashed: true, why: "another client has it open"},
		"open in this process":        {scene: scene{owner: a, self: "v2:" + a, noted: owned{"me", a}}, crashed: true, why: "has it open already"},
		"superseded, alive":           {scene: scene{owner: b, watchers: []string{b}, noted: owned{"you", b}, superseded: []string{a, "v2:" + b}}, want: seize},
		"another than superseded":     {scene: scene{owner: b, watchers: []string{b}, noted: owned{"you", a}, superseded: []string{a}}, why: "another client has it open"},
		"another's address as prefix": {scene: scene{owner: b + "0", watchers: []string{b}}, want: seize},
	} {
		c.server = "me"
		got, err := c.judge()
		if got != c.want || c.scene.crashed() != c.crashed || (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: found %v, crashed %v, %v", name, got, c.scene.crashed(), err)
		}
	}
	if o := (owned{"server", "address"}); parseOwned(o.String()) != o {
		t.Errorf("found %v", parseOwned(o.String()))
	}
}
