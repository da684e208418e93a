// Package site has three servers of one volume on a Ceph cluster of this host, with members
// of etcd, all of them processes of this one's, and does to them what happens to servers.
package site

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// Volume is the name of the volume and of its image.
	Volume = "db"
	// Target leads to it, as LUN 0.
	Target = "iqn.2026-11.example.lunar:db"

	tries = 500 // of what becomes true within seconds; each takes some tens of milliseconds
)

// Options are those of a command line.
type Options struct {
	Lab    string `required:"" help:"cluster.sh, which starts and ends the Ceph cluster."`
	Bin    string `required:"" help:"Directory of tgtd (built with -tags rbd), lunar and lunar-etcd."`
	Etcd   string `enum:"embedded,external" default:"embedded" help:"embedded: members that keepers run, who end the leases of servers that die; external: etcd alone."`
	Cached bool   `negatable:"" default:"true" help:"The volume has a cache."`
	Keep   bool   `help:"Leave the directory and its logs."`

	Rules string            `kong:"-"` // what else all servers' configurations have
	Image func(*Site) error `kong:"-"` // what is done to the image before a server opens it; nil: nothing
}

// Site is all that runs.
type Site struct {
	Options
	Dir       string
	Nodes     []*Node
	members   []*exec.Cmd // of etcd, or their keepers
	endpoints []string    // of external members
}

// New starts everything, and returns when a node owns the volume, of so many bytes.
func New(o Options, bytes int64) (s *Site, err error) {
	s = &Site{Options: o}
	if s.Dir, err = os.MkdirTemp("", "lunar-cluster-"); err != nil {
		return nil, err
	}
	if err := s.start(bytes); err != nil {
		err = fmt.Errorf("%w\n%s", err, s.Logs())
		s.End()
		return nil, err
	}
	return s, nil
}

func (s *Site) start(bytes int64) (err error) {
	if Separate() {
		if err = bridge(); err != nil {
			return err
		}
	}
	if err := s.ceph("up"); err != nil {
		return err
	}
	if said, err := s.RBD("create", "--size", fmt.Sprint(bytes, "B"), "rbd/"+Volume); err != nil {
		return fmt.Errorf("rbd create: %w: %s", err, said)
	}
	if s.Image != nil {
		if err := s.Image(s); err != nil {
			return err
		}
	}
	if s.Etcd == "external" {
		if err := s.external(); err != nil {
			return err
		}
	}
	for i := range 3 {
		n, err := s.node(i)
		if err != nil {
			return fmt.Errorf("node n%d: %w", i+1, err)
		}
		s.Nodes = append(s.Nodes, n)
	}
	for _, n := range s.Nodes {
		if _, err := n.Start(); err != nil {
			return err
		}
	}
	_, err = s.Owner()
	return err
}

// Tgtd is the servers' program.
func (o *Options) Tgtd() string { return filepath.Join(o.Bin, "tgtd") }

func (s *Site) ceph(what string) error {
	cmd := exec.Command(s.Lab, what, filepath.Join(s.Dir, "ceph"))
	cmd.Env = append(os.Environ(), "ADDRESS="+host())
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// RBD runs rbd on the site's Ceph cluster, and returns what it said.
func (s *Site) RBD(args ...string) ([]byte, error) {
	conf := filepath.Join(s.Dir, "ceph", "ceph.conf")
	return exec.Command("rbd", append([]string{"--conf", conf}, args...)...).CombinedOutput()
}

// external starts three members that nobody keeps.
func (s *Site) external() error {
	var peers, initial []string
	for i := range 3 {
		port, err := free(2)
		if err != nil {
			return err
		}
		s.endpoints = append(s.endpoints, fmt.Sprint("http://", host(), ":", port))
		peers = append(peers, fmt.Sprint("http://", host(), ":", port+1))
		initial = append(initial, fmt.Sprintf("e%d=%s", i, peers[i]))
	}
	for i := range 3 {
		err := s.run(fmt.Sprint("e", i), nil, "etcd", "--name", fmt.Sprint("e", i), "--data-dir", filepath.Join(s.Dir, fmt.Sprint("e", i)),
			"--listen-client-urls", s.endpoints[i], "--advertise-client-urls", s.endpoints[i],
			"--listen-peer-urls", peers[i], "--initial-advertise-peer-urls", peers[i], "--initial-cluster", strings.Join(initial, ","),
			"--heartbeat-interval", "50", "--election-timeout", "500", "--log-level", "warn")
		if err != nil {
			return err
		}
	}
	return nil
}

// run starts lunar-etcd.
func (s *Site) run(name string, inside []string, args ...string) error {
	log, err := os.Create(filepath.Join(s.Dir, name+".log"))
	if err != nil {
		return err
	}
	line := append(append(inside, filepath.Join(s.Bin, "lunar-etcd")), args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	cmd.Stdout, cmd.Stderr = log, log
	s.members = append(s.members, cmd)
	return cmd.Start()
}

// free returns the first of n ports in a row that nobody uses. They are below those that the
// kernel gives to connections, for some are listened at only seconds later.
func free(n int) (int, error) {
	const lowest, highest = 20000, 32000
	for range 100 {
		first := lowest + rand.IntN(highest-lowest)
		var open []net.Listener
		for i := range n {
			l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+i))
			if err != nil {
				break
			}
			open = append(open, l)
		}
		for _, l := range open {
			l.Close()
		}
		if len(open) == n {
			return first, nil
		}
	}
	return 0, errors.New("found no free ports in a row")
}

// eventually tries until there is no error, a bounded number of times: time that passes while
// this host stands still does not count.
func eventually(what string, try func() error) error {
	var err error
	for range tries {
		if err = try(); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("%s: not within %d tries: %w", what, tries, err)
}

// Logs are the ends of what the servers have said.
func (s *Site) Logs() (all string) {
	for _, n := range s.Nodes {
		lines := strings.Split(n.Output.String(), "\n")
		all += n.Name + ":\n" + strings.Join(lines[max(0, len(lines)-25):], "\n") + "\n"
	}
	return all
}

// StopServers ends the servers; etcd and Ceph go on.
func (s *Site) StopServers() {
	for _, n := range s.Nodes {
		if n.Process != nil {
			_ = n.Process.Signal(syscall.SIGCONT) // it may have ended
			_ = n.Kill(syscall.SIGTERM)
		}
	}
}

// End ends all, and removes the directory.
func (s *Site) End() {
	s.StopServers()
	for _, m := range s.members {
		if m.Process != nil {
			_ = m.Process.Signal(syscall.SIGTERM)
			_ = m.Wait() // how it ends does not matter
		}
	}
	if err := s.ceph("down"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	for _, n := range s.Nodes {
		if n.space != "" {
			_ = run("ip", "netns", "del", n.space) // it ends with this program's at the latest
		}
	}
	if !s.Keep {
		os.RemoveAll(s.Dir)
		return
	}
	for _, n := range s.Nodes {
		if err := os.WriteFile(filepath.Join(s.Dir, n.Name+".out"), []byte(n.Output.String()), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
