//go:build linux && cgo && rbd

// Command rbd measures the store on images of a Ceph cluster of this host: beside rbd bench and
// beside a goroutine for each blocking call, and while OSDs are killed. It writes a page.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"lunar/backstore/rbd"
	"lunar/backstore/rbd/native"
)

type options struct {
	Lab     string `required:"" help:"cluster.sh, which starts and ends the cluster."`
	Only    string `enum:",speed,kills" default:"" help:"A part: speed or kills."`
	Rounds  int    `default:"5" help:"Of each measurement; they take turns."`
	Seconds int    `default:"4" help:"Of each measurement."`
	Kills   int    `default:"5" help:"OSDs that are killed, one after the other."`
}

func main() {
	var o options
	kong.Parse(&o)
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "rbd:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	slog.SetLogLoggerLevel(slog.LevelWarn)
	version, err := exec.Command("ceph", "--version").Output()
	if err != nil {
		return err
	}
	fmt.Printf("# RBD\n\nWritten by `make evidence-rbd`, with %s, built by %s. Client and cluster share the CPUs of one machine (%s), so that ratios count more than rates.\n",
		strings.Join(strings.Fields(string(version))[:3], " "), goVersion(), processors())
	for _, part := range []struct {
		name string
		run  func() error
	}{{"speed", o.speed}, {"kills", o.kills}} {
		if o.Only == "" || o.Only == part.name {
			if err := part.run(); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	return nil
}

func goVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "Go"
	}
	return info.GoVersion
}

func processors() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // then nothing is known
	model := "unknown"
	n := 0
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model, n = strings.TrimSpace(value), n+1
		}
	}
	return strconv.Itoa(n) + " of " + model
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
