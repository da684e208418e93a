// Command promises has three servers on this host serve one volume of a Ceph cluster of this host
// to an initiator with a reservation and a limit, one with a limit and two that want all there
// is; has the first one's demand move from server to server, kills and stops the server that
// keeps the promises, and writes docs/reports/promises.md.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/notes"
	"lunar/scripts/evidence/site"
)

// What is promised, and what the image can do, in commands per second. The image's own throttle
// makes Ceph the bottleneck long before this host's CPUs are.
const (
	capacity = 1000
	reserved = 300
	limited  = 450
	held     = 150 // the limit of the initiator that has no reservation
)

const rules = `qos:
  capacity: %d
  window: 8
  rules:
    - {name: promised, initiators: ["` + prefix + `promised"], reservation: %d, limit: %d}
    - {name: held, initiators: ["` + prefix + `held"], limit: %d}
`

type options struct {
	site.Options
	Notes  string        `default:"docs/reports/promises/results.json" help:"Results, by check."`
	To     string        `default:"docs/reports/promises.md" help:"The document."`
	Only   []string      `help:"Some of the checks."`
	Moves  int           `default:"24" help:"How often the demand moves."`
	Every  time.Duration `default:"2500ms" help:"For how long it stays."`
	Rounds int           `default:"5" help:"Servers that are killed, and that are stopped."`
}

//go:embed promises.md.tmpl
var page string

func main() {
	if err := site.Apart(); err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(1)
	}
	var o options
	line := kong.Parse(&o, kong.Name("promises"), kong.Description("Measure what initiators get of a cluster of servers."))
	o.Cached, o.Rules, o.Image = false, fmt.Sprintf(rules, capacity, reserved, limited, held), prepare
	s := &scene{options: &o}
	err := notes.Measure(notes.Report{Tgtd: o.Tgtd(), Notes: o.Notes, To: o.To, Page: page, Only: o.Only}, s, s.checks())
	line.FatalIfErrorf(errors.Join(err, s.end()))
}

// prepare has the image hold data, and let so many commands per second pass.
func prepare(s *site.Site) error {
	const image = "rbd/" + site.Volume
	for _, command := range [][]string{
		{"bench", "--io-type", "write", "--io-size", "1M", "--io-threads", "4", "--io-total", fmt.Sprint(volumeBytes), "--io-pattern", "seq", image},
		{"config", "image", "set", image, "rbd_qos_iops_limit", fmt.Sprint(capacity)},
		{"config", "image", "set", image, "rbd_qos_schedule_tick_min", "10"},
	} {
		if said, err := s.RBD(command...); err != nil {
			return fmt.Errorf("rbd %s: %w: %s", command[0], err, said)
		}
	}
	return nil
}

// scene is what all checks happen on: it begins with the first of them.
type scene struct {
	*options
	site           *site.Site
	promised, held *user
	greedy         []*user
}

func (s *scene) checks() []notes.Check[*scene] {
	of := func(name, title string, run func() (notes.Result, error)) notes.Check[*scene] {
		return notes.Check[*scene]{Name: name, Title: title, Run: func(context.Context, *scene) (notes.Result, error) {
			if err := s.begin(); err != nil {
				return notes.Result{}, err
			}
			r, err := run()
			r.How = s.how()
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, s.site.Logs())
			}
			return r, err
		}}
	}
	return []notes.Check[*scene]{
		of("staying", "nothing happens for 20 s", s.staying),
		of("moving", "the demand moves from node to node", s.moving),
		of("kill", "`kill -9` of the node that keeps the promises, which starts again after 5 s", func() (notes.Result, error) { return s.without((*scene).kill) }),
		of("stop", "SIGSTOP of that node for 5 s", func() (notes.Result, error) { return s.without((*scene).stop) }),
	}
}

// begin has the servers run and the initiators come, if they have not.
func (s *scene) begin() (err error) {
	if s.site != nil {
		return nil
	}
	if s.site, err = site.New(s.Options, volumeBytes); err != nil {
		return err
	}
	s.promised, s.held = begin(s.site, 1, "promised"), begin(s.site, 2, "held")
	s.greedy = []*user{begin(s.site, 3, "greedy-1"), begin(s.site, 4, "greedy-2")}
	for _, u := range append(s.greedy, s.held) {
		u.ask(0, 1, 2)
	}
	s.promised.ask(0)
	time.Sleep(5 * time.Second)
	return nil
}

func (s *scene) users() []*user { return append([]*user{s.promised, s.held}, s.greedy...) }

func (s *scene) end() error {
	if s.site == nil {
		return nil
	}
	for _, u := range s.users() {
		u.end()
	}
	s.site.End()
	return nil
}

// failed is an answer that nobody may get.
func (s *scene) failed() notes.Fact {
	wrong := ""
	for _, u := range s.users() {
		wrong += u.failed()
	}
	if wrong == "" {
		return notes.Found("commands that failed", "0", true)
	}
	return notes.Found("commands that failed", wrong, false)
}

// how says what has run.
func (o *options) how() string {
	ceph, _ := exec.Command("ceph", "--version").Output() // it has run before
	network := "loopback"
	if site.Separate() {
		network = "network namespaces"
	}
	return fmt.Sprintf("%s, etcd %s, %s.", strings.Join(strings.Fields(string(ceph) + " - -")[:3], " "), o.Etcd, network)
}
