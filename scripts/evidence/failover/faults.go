package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// move has the owner give the volume to another node.
func (s *site) move(l *load) error {
	from, err := s.owner()
	if err != nil {
		return err
	}
	to := s.other(from)
	l.busy(time.Second / 2)
	if err := to.lunar("cluster", "move", volume, to.name, "--socket", to.Socket()); err != nil {
		return err
	}
	l.busy(time.Second / 2)
	return nil
}

// kill ends the owner, and starts it again when another one serves.
func (s *site) kill(l *load) error {
	from, err := s.owner()
	if err != nil {
		return err
	}
	l.busy(time.Second / 2)
	if err := from.Kill(syscall.SIGKILL); err != nil {
		return err
	}
	l.busy(2 * time.Second)
	if _, err := from.Start(); err != nil {
		return err
	}
	return s.together()
}

// stop has the owner stand still, and go on when another one serves.
func (s *site) stop(l *load) error {
	from, err := s.owner()
	if err != nil {
		return err
	}
	l.busy(time.Second)
	if err := from.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	l.busy(5 * time.Second)
	if err := from.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	l.busy(time.Second)
	return s.together()
}

// together waits until all nodes say the same of the owner.
func (s *site) together() error {
	return eventually("all nodes agree", func() error {
		first := ""
		for _, n := range s.nodes {
			name, err := n.seen()
			if err != nil {
				return fmt.Errorf("%s: %w", n.name, err)
			}
			if first == "" {
				first = name
			}
			if first != name {
				return fmt.Errorf("found %s and %s", first, name)
			}
		}
		return nil
	})
}

// restart stops the owner in order, which gives the volume to another one first.
func (s *site) restart(l *load) error {
	from, err := s.owner()
	if err != nil {
		return err
	}
	l.busy(time.Second)
	if err := from.Kill(syscall.SIGTERM); err != nil {
		return err
	}
	if _, err := from.Start(); err != nil {
		return err
	}
	return s.together()
}

// noQuorum has members of etcd stand still, with their keepers.
func (s *site) noQuorum(l *load) error {
	l.busy(time.Second)
	err := s.signal(syscall.SIGSTOP)
	l.busy(10 * time.Second)
	err = errors.Join(err, s.signal(syscall.SIGCONT))
	l.busy(3 * time.Second)
	return errors.Join(err, s.together())
}

func (s *site) signal(signal syscall.Signal) (err error) {
	for _, m := range s.members[1:] {
		err = errors.Join(err, syscall.Kill(-m.Process.Pid, signal), s.signalChildren(m.Process.Pid, signal))
	}
	return err
}

// signalChildren reaches etcd, which its keeper may have put into a group of its own.
func (s *site) signalChildren(pid int, signal syscall.Signal) error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range strings.Fields(string(text)) {
		n, e := strconv.Atoi(child)
		err = errors.Join(err, e, syscall.Kill(n, signal))
	}
	return err
}

func (s *site) monitor(signal syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(s.dir, "ceph", "run", "mon.a.pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

// noMonitor has nobody be fenced, while nobody needs to be.
func (s *site) noMonitor(l *load) error {
	l.busy(time.Second)
	err := s.monitor(syscall.SIGSTOP)
	l.busy(5 * time.Second)
	return errors.Join(err, s.monitor(syscall.SIGCONT))
}

// killWithoutMonitor kills the owner while nobody can be fenced.
func (s *site) killWithoutMonitor(l *load) error {
	from, err := s.owner()
	if err != nil {
		return err
	}
	l.busy(time.Second)
	err = errors.Join(s.monitor(syscall.SIGSTOP), from.Kill(syscall.SIGKILL))
	l.busy(5 * time.Second)
	err = errors.Join(err, s.monitor(syscall.SIGCONT))
	l.busy(3 * time.Second)
	if _, e := from.Start(); e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, s.together())
}

// during cuts the owner off for some time, and returns it, and who owns the volume at the end of
// that time.
func (s *site) during(l *load, d time.Duration, selectors []string) (from *server, now string, err error) {
	if from, err = s.owner(); err != nil {
		return nil, "", err
	}
	l.busy(time.Second)
	mend, err := from.cut(selectors...)
	if err != nil {
		return nil, "", err
	}
	l.busy(d)
	now, err = s.other(from).seen()
	err = errors.Join(err, mend())
	l.busy(3 * time.Second)
	return from, now, errors.Join(err, s.together())
}

// stays is during after which the owner has to be the same.
func (s *site) stays(l *load, selectors []string) error {
	from, now, err := s.during(l, 10*time.Second, selectors)
	if err == nil && now != from.name {
		err = fmt.Errorf("found owner %s, expected %s as before", now, from.name)
	}
	if err == nil {
		now, err = s.other(from).seen()
	}
	if err == nil && now != from.name {
		err = fmt.Errorf("found owner %s afterwards, expected %s as before", now, from.name)
	}
	return err
}

func (s *site) cutFromEtcd(l *load) error { return s.stays(l, etcdPorts) }

func (s *site) cutFromHosts(l *load) error { return s.stays(l, hostPorts) }

// cutFromCeph has the volume move to a server that Ceph answers.
func (s *site) cutFromCeph(l *load) error {
	ports, err := s.cephPorts()
	if err != nil {
		return err
	}
	l.busy(time.Minute) // no volume moves so twice in half a minute
	l.beginRound()
	from, now, err := s.during(l, 15*time.Second, ports)
	if err == nil && now == from.name {
		err = fmt.Errorf("found owner %s as before, expected another one", now)
	}
	return err
}
