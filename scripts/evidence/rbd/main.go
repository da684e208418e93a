//go:build linux && cgo && rbd

// Command rbd measures the store on images of a Ceph cluster of this host: beside rbd bench and
// beside a goroutine for each blocking call, and while OSDs are killed. It writes
// docs/reports/rbd.md.
package main

import (
	_ "embed"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"lunar/backstore/rbd"
	"lunar/backstore/rbd/native"
	"lunar/scripts/evidence/notes"
)

type options struct {
	Lab     string   `required:"" help:"cluster.sh, which starts and ends the cluster."`
	Tgtd    string   `required:"" type:"path" placeholder:"FILE" help:"The server of the same version."`
	Notes   string   `default:"docs/reports/rbd/results.json" help:"Results, by check."`
	To      string   `default:"docs/reports/rbd.md" help:"The document."`
	Only    []string `help:"Some of the checks: speed, kills."`
	Rounds  int      `default:"5" help:"Of each measurement; they take turns."`
	Seconds int      `default:"4" help:"Of each measurement."`
	Kills   int      `default:"5" help:"OSDs that are killed, one after the other."`
}

var checks = []notes.Check[options]{
	{Name: "speed", Title: "Beside others", Run: speed},
	{Name: "kills", Title: "OSDs killed under checked load", Run: kills},
}

//go:embed rbd.md.tmpl
var page string

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	var o options
	line := kong.Parse(&o, kong.Name("rbd"), kong.Description("Measure the store on images of a Ceph cluster."))
	line.FatalIfErrorf(notes.Measure(notes.Report{Tgtd: o.Tgtd, Notes: o.Notes, To: o.To, Page: page, Only: o.Only}, o, checks))
}

// cephVersion is that of the cluster's programs.
func cephVersion() string {
	version, _ := exec.Command("ceph", "--version").Output() // it has run before
	return strings.Join(strings.Fields(string(version) + " - -")[:3], " ")
}

// cluster is one of this host.
type cluster struct{ lab, dir string }

func (o *options) cluster(environment ...string) (*cluster, error) {
	dir, err := os.MkdirTemp("", "lunar-ceph-")
	if err != nil {
		return nil, err
	}
	c := &cluster{o.Lab, dir}
	if err := c.command("up", environment...); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

func (c *cluster) command(what string, environment ...string) error {
	args := strings.Fields(what)
	cmd := exec.Command(c.lab, slices.Insert(args, 1, c.dir)...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cluster.sh %s: %w", what, err)
	}
	return nil
}

func (c *cluster) end() {
	if err := c.command("down"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (c *cluster) config() string { return filepath.Join(c.dir, "ceph.conf") }

func (c *cluster) account() rbd.Account {
	return rbd.Account{Config: c.config(), User: "admin", Keyring: filepath.Join(c.dir, "keyring")}
}

// rbd runs Ceph's own program.
func (c *cluster) rbd(args ...string) (string, *os.ProcessState, error) {
	cmd := exec.Command("rbd", append([]string{"--conf", c.config()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("rbd %s: %w: %s", args, err, out)
	}
	return string(out), cmd.ProcessState, err
}

// store opens an image of so many bytes, which is made.
func (c *cluster) store(name string, size int64) (*rbd.Store, error) {
	image := rbd.Name{Pool: "rbd", Image: name}
	if _, _, err := c.rbd("create", "--size", fmt.Sprint(size, "B"), image.String()); err != nil {
		return nil, err
	}
	return c.open(image)
}

func (c *cluster) open(image rbd.Name) (*rbd.Store, error) {
	return rbd.Open(rbd.Config{
		Clients: rbd.NewClients(native.Open, slog.Default()), Account: c.account(), Image: image, Server: "evidence", Logger: slog.Default(),
	})
}
