package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/scripts/evidence/daemon"
)

const (
	volumeBytes = 64 << 20
	volume      = "db"
	targetName  = "iqn.2026-11.example.lunar:db"
	patience    = 30 * time.Second
)

// site is all that runs.
type site struct {
	*options
	dir       string
	nodes     []*server
	members   []*exec.Cmd // of etcd, or their keepers
	endpoints []string    // of external members
}

// server is a node.
type server struct {
	*daemon.Server
	site   *site
	name   string
	portal string
	space  string // network namespace; empty: that of this program
}

func newSite(o *options) (s *site, err error) {
	s = &site{options: o}
	if s.dir, err = os.MkdirTemp("", "lunar-cluster-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, s.logs())
			s.end()
		}
	}()
	if namespaces() {
		if err = bridge(); err != nil {
			return s, err
		}
	}
	if err = s.ceph("up"); err != nil {
		return s, err
	}
	conf := filepath.Join(s.dir, "ceph", "ceph.conf")
	if said, err := exec.Command("rbd", "--conf", conf, "create", "--size", fmt.Sprint(volumeBytes, "B"), "rbd/"+volume).CombinedOutput(); err != nil {
		return s, fmt.Errorf("rbd create: %w: %s", err, said)
	}
	if s.Etcd == "external" {
		if err := s.external(); err != nil {
			return s, err
		}
	}
	for i := range 3 {
		n, err := s.node(i)
		if err != nil {
			return s, fmt.Errorf("node n%d: %w", i+1, err)
		}
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes {
		if _, err := n.Start(); err != nil {
			return s, err
		}
	}
	_, err = s.owner()
	return s, err
}

func (o *options) tgtd() string { return filepath.Join(o.Bin, "tgtd") }

func (s *site) ceph(what string) error {
	cmd := exec.Command(s.Lab, what, filepath.Join(s.dir, "ceph"))
	cmd.Env = append(os.Environ(), "ADDRESS="+host())
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

const config = `server: {threads: 1}
portal-groups:
  pg%[1]d: {tag: %[1]d, listen: ["%[2]s"]}
cluster: {name: evidence, node: n%[1]d, etcd: %[6]s}
ceph:
  main: {config: %[3]s/ceph/ceph.conf, user: admin, keyring-file: %[3]s/ceph/keyring}
%[4]svolumes:
  db: {type: rbd, ceph: main, image: rbd/db, owners: [n1, n2, n3]%[5]s}
targets:
  iqn.2026-11.example.lunar:db:
    auth-group: none
    luns: [{lun: 0, volume: db}]
`

// node makes one, and its member of etcd, which it starts.
func (s *site) node(i int) (*server, error) {
	n := &server{site: s, name: fmt.Sprint("n", i+1)}
	address, err := n.address(i)
	if err != nil {
		return nil, err
	}
	cache, use := "", ""
	if s.Cached {
		cache, use = "cache: {size: 64MiB}\n", ", cache: {}"
	}
	if n.Server, err = daemon.New(s.tgtd(), filepath.Join(s.dir, n.name), fmt.Sprintf(config, i+1, n.portal, s.dir, cache, use, s.etcd())); err != nil {
		return nil, err
	}
	n.Prefix = n.inside()
	if s.Etcd == "external" {
		return n, nil
	}
	return n, n.member(i, address)
}

// address finds out where a server is reached.
func (n *server) address(i int) (string, error) {
	if namespaces() {
		address, err := n.separate(i)
		n.portal = address + ":3260"
		return address, err
	}
	portal, err := free(1)
	n.portal = fmt.Sprint("127.0.0.1:", portal)
	return "127.0.0.1", err
}

// etcd is how servers reach it.
func (s *site) etcd() string {
	if s.Etcd == "embedded" {
		return "{mode: embedded}"
	}
	return fmt.Sprintf("{mode: external, endpoints: [\"%s\"]}", strings.Join(s.endpoints, `", "`))
}

// external starts three members that nobody keeps.
func (s *site) external() error {
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
		err := s.run(fmt.Sprint("e", i), nil, "etcd", "--name", fmt.Sprint("e", i), "--data-dir", filepath.Join(s.dir, fmt.Sprint("e", i)),
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
func (s *site) run(name string, inside []string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, name+".log"))
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

// member makes the node a member of etcd: the first one by init, the others by tokens of it.
func (n *server) member(i int, address string) (err error) {
	port := 7421
	if n.space == "" {
		if port, err = free(4); err != nil { // one is the server's
			return err
		}
	}
	who := []string{"--state-dir", n.State, "--node", n.name, "--address", address, "--port", fmt.Sprint(port)}
	if i == 0 {
		err = n.lunar(append([]string{"cluster", "init", "evidence"}, who...)...)
	} else {
		first := n.site.nodes[0]
		code, token := first.Lunar("cluster", "token", "--state-dir", first.State)
		if code != 0 {
			return fmt.Errorf("lunar cluster token: %s", token)
		}
		err = n.lunar(append([]string{"cluster", "join", strings.TrimSpace(token)}, who...)...)
	}
	if err != nil {
		return err
	}
	if err := n.site.run(n.name, n.inside(), "run", "--dir", filepath.Join(n.State, "etcd")); err != nil {
		return err
	}
	return eventually("a member of etcd", func() error { return n.lunar("cluster", "token", "--state-dir", n.State) })
}

func (n *server) lunar(args ...string) error {
	if code, said := n.Lunar(args...); code != 0 {
		return fmt.Errorf("lunar %s: code %d: %s", strings.Join(args, " "), code, said)
	}
	return nil
}

// free returns the first of n ports in a row that nobody uses.
func free(n int) (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		first := l.Addr().(*net.TCPAddr).Port
		open := []net.Listener{l}
		for i := 1; i < n; i++ {
			if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+i)); err != nil {
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

// eventually tries until there is no error.
func eventually(what string, try func() error) error {
	var err error
	for began := time.Now(); time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: not within %v: %w", what, patience, err)
}

// owner is the node that serves the volume, as one that lives says.
func (s *site) owner() (owner *server, err error) {
	return owner, eventually("an owner", func() error {
		var errs []error
		for _, n := range s.nodes {
			name, err := n.seen()
			for _, o := range s.nodes {
				if err == nil && o.name == name {
					owner = o
					return nil
				}
			}
			errs = append(errs, fmt.Errorf("%s: owner %q: %w", n.name, name, err))
		}
		return errors.Join(errs...)
	})
}

// seen is who owns the volume as a node sees it.
func (n *server) seen() (string, error) {
	code, said := n.Lunar("cluster", "status", "--json", "--socket", n.Socket())
	if code != 0 {
		return "", errors.New(said)
	}
	var c struct {
		Volumes []struct{ Name, Owner, State string }
	}
	if err := json.Unmarshal([]byte(said), &c); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	for _, v := range c.Volumes {
		if v.Name == volume && v.State == "owned" {
			return v.Owner, nil
		}
	}
	return "", fmt.Errorf("found no owner: %s", said)
}

// other is a node that is not the owner, each in its turn.
func (s *site) other(owner *server) *server {
	for i, n := range s.nodes {
		if n == owner {
			return s.nodes[(i+1)%len(s.nodes)]
		}
	}
	return s.nodes[0]
}

// logs are the ends of what the servers have said.
func (s *site) logs() (all string) {
	for _, n := range s.nodes {
		lines := strings.Split(n.Output.String(), "\n")
		all += n.name + ":\n" + strings.Join(lines[max(0, len(lines)-25):], "\n") + "\n"
	}
	return all
}

func (s *site) end() {
	for _, n := range s.nodes {
		if n.Process != nil {
			_ = n.Process.Signal(syscall.SIGCONT) // it may have ended
			_ = n.Kill(syscall.SIGTERM)
		}
	}
	for _, m := range s.members {
		if m.Process != nil {
			_ = m.Process.Signal(syscall.SIGTERM)
			_ = m.Wait() // how it ends does not matter
		}
	}
	if err := s.ceph("down"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	for _, n := range s.nodes {
		if n.space != "" {
			_ = run("ip", "netns", "del", n.space)
		}
	}
	if !s.Keep {
		os.RemoveAll(s.dir)
		return
	}
	for _, n := range s.nodes {
		if err := os.WriteFile(filepath.Join(s.dir, n.name+".out"), []byte(n.Output.String()), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
}
