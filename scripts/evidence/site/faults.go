package site

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

// Move has the owner give the volume to another node.
func (s *Site) Move() error {
	from, err := s.Owner()
	if err != nil {
		return err
	}
	return s.MoveTo(s.Other(from))
}

// MoveTo has a node get the volume, if it has it not.
func (s *Site) MoveTo(to *Node) error {
	now, err := s.Owner()
	if err != nil || now == to {
		return err
	}
	return to.lunar("cluster", "move", Volume, to.Name, "--socket", to.Socket())
}

// Kill ends the owner, and starts it again after the time, when another one serves.
func (s *Site) Kill(after time.Duration) error {
	from, err := s.Owner()
	if err != nil {
		return err
	}
	if err := from.Kill(syscall.SIGKILL); err != nil {
		return err
	}
	time.Sleep(after)
	if _, err := from.Start(); err != nil {
		return err
	}
	return s.together()
}

// Stop has the owner stand still for a time in which another one takes the volume over.
func (s *Site) Stop(d time.Duration) error {
	from, err := s.Owner()
	if err != nil {
		return err
	}
	if err := from.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(d)
	if err := from.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	time.Sleep(time.Second)
	return s.together()
}

// Restart stops the owner in order, which gives the volume to another one first.
func (s *Site) Restart() error {
	from, err := s.Owner()
	if err != nil {
		return err
	}
	if err := from.Kill(syscall.SIGTERM); err != nil {
		return err
	}
	if _, err := from.Start(); err != nil {
		return err
	}
	return s.together()
}

// NoQuorum has two members of etcd stand still, with their keepers.
func (s *Site) NoQuorum(d time.Duration) error {
	return s.WithoutQuorum(func() error { time.Sleep(d); return nil })
}

// WithoutQuorum does something while two members of etcd stand still, with their keepers.
func (s *Site) WithoutQuorum(what func() error) error {
	err := s.signal(syscall.SIGSTOP)
	err = errors.Join(err, what(), s.signal(syscall.SIGCONT))
	time.Sleep(3 * time.Second)
	return errors.Join(err, s.together())
}

func (s *Site) signal(signal syscall.Signal) (err error) {
	for _, m := range s.members[1:] {
		err = errors.Join(err, syscall.Kill(-m.Process.Pid, signal), s.signalChildren(m.Process.Pid, signal))
	}
	return err
}

// daemon sends a signal to one of Ceph's, such as mon.a.
func (s *Site) daemon(name string, signal syscall.Signal) error {
	text, err := os.ReadFile(filepath.Join(s.Dir, "ceph", "run", name+".pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, signal)
}

func (s *Site) monitor(signal syscall.Signal) error { return s.daemon("mon.a", signal) }

// NoMonitor has nobody be fenced for a time, while nobody needs to be.
func (s *Site) NoMonitor(d time.Duration) error {
	err := s.monitor(syscall.SIGSTOP)
	time.Sleep(d)
	return errors.Join(err, s.monitor(syscall.SIGCONT))
}

// KillWithoutMonitor kills the owner while for a time nobody can be fenced.
func (s *Site) KillWithoutMonitor(d time.Duration) error {
	from, err := s.Owner()
	if err != nil {
		return err
	}
	err = errors.Join(s.monitor(syscall.SIGSTOP), from.Kill(syscall.SIGKILL))
	time.Sleep(d)
	err = errors.Join(err, s.monitor(syscall.SIGCONT))
	time.Sleep(3 * time.Second)
	if _, e := from.Start(); e != nil {
		return errors.Join(err, e)
	}
	return errors.Join(err, s.together())
}

// during cuts the owner off for some time, and returns it, and who owns the volume at the end of
// that time.
func (s *Site) during(d time.Duration, cut func(*Node) (mend func() error, err error)) (from *Node, now string, err error) {
	if from, err = s.Owner(); err != nil {
		return nil, "", err
	}
	mend, err := cut(from)
	if err != nil {
		return nil, "", err
	}
	time.Sleep(d)
	now, err = s.Other(from).seen()
	err = errors.Join(err, mend())
	time.Sleep(3 * time.Second)
	return from, now, errors.Join(err, s.together())
}

// stays is during after which the owner has to be the same.
func (s *Site) stays(d time.Duration, selectors []string) error {
	from, now, err := s.during(d, cutFrom(selectors))
	if err == nil && now != from.Name {
		err = fmt.Errorf("found owner %s, expected %s as before", now, from.Name)
	}
	if err == nil {
		now, err = s.Other(from).seen()
	}
	if err == nil && now != from.Name {
		err = fmt.Errorf("found owner %s afterwards, expected %s as before", now, from.Name)
	}
	return err
}

// leaves is during at whose end another node has to own the volume.
func (s *Site) leaves(d time.Duration, cut func(*Node) (mend func() error, err error)) error {
	from, now, err := s.during(d, cut)
	if err == nil && now == from.Name {
		err = fmt.Errorf("found owner %s as before, expected another one", now)
	}
	return err
}

// CutFromEtcd has the owner not reach etcd for a time, and not lose the volume.
func (s *Site) CutFromEtcd(d time.Duration) error { return s.stays(d, etcdPorts) }

// CutFromHosts has hosts not reach the owner for a time, which goes on to own the volume.
func (s *Site) CutFromHosts(d time.Duration) error { return s.stays(d, hostPorts) }

// CutFromCeph has the volume move to a server that Ceph answers.
func (s *Site) CutFromCeph(d time.Duration) error {
	ports, err := s.cephPorts()
	if err != nil {
		return err
	}
	return s.leaves(d, cutFrom(ports))
}

// Silence has nobody reach the owner for a time, nor its member of etcd: to all others it is as if
// its host had lost its power.
func (s *Site) Silence(d time.Duration) error { return s.leaves(d, (*Node).unplug) }

// Stuck has the owner be killed, or stopped, while what it has sent to Ceph is stuck in an OSD that
// stands still. Then the OSD goes on, before the owner does. caught is called when the OSD has stood
// still for long enough that users wait for it; taken is whether another node served meanwhile.
func (s *Site) Stuck(signal syscall.Signal, caught func()) (taken bool, err error) {
	const stands, noticed = 300 * time.Millisecond, 3500 * time.Millisecond
	from, err := s.Owner()
	if err != nil {
		return false, err
	}
	if err := s.daemon("osd.0", syscall.SIGSTOP); err != nil {
		return false, err
	}
	time.Sleep(stands)
	caught()
	if signal == syscall.SIGKILL {
		err = from.Kill(signal)
	} else {
		err = from.Process.Signal(signal)
	}
	time.Sleep(noticed) // another node fences the owner, and begins to open the volume
	err = errors.Join(err, s.daemon("osd.0", syscall.SIGCONT))
	now := ""
	err = errors.Join(err, eventually("another node serves", func() (err error) {
		now, err = s.Other(from).seen()
		return err
	}))
	if signal == syscall.SIGKILL {
		_, start := from.Start()
		err = errors.Join(err, start)
	} else {
		err = errors.Join(err, from.Process.Signal(syscall.SIGCONT))
	}
	time.Sleep(time.Second)
	return now != from.Name, errors.Join(err, s.together())
}
