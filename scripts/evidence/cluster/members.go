package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"lunar/cluster/etcd"
	"lunar/cluster/member"
)

const patience = 60 * time.Second

// members are those of one cluster.
type members struct {
	dir  string
	all  []*node
	once *etcd.State // all members may answer it
}

type node struct {
	dir  member.Dir
	self member.Node
	cmd  *exec.Cmd
}

// newMembers starts a cluster of so many.
func newMembers(ctx context.Context, program string, count int) (*members, error) {
	dir, err := os.MkdirTemp("", "evidence-cluster-")
	if err != nil {
		return nil, err
	}
	m := &members{dir: dir}
	for i := range count {
		if err := m.add(ctx, program, i); err != nil {
			m.end()
			return nil, err
		}
	}
	return m, nil
}

// end ends all members, and removes what they had.
func (m *members) end() {
	if m.once != nil {
		m.once.Close()
	}
	for _, n := range m.all {
		_ = n.cmd.Process.Signal(syscall.SIGTERM)
		_ = n.cmd.Wait()
	}
	os.RemoveAll(m.dir)
}

func (m *members) add(ctx context.Context, program string, i int) error {
	port, err := threePorts()
	if err != nil {
		return err
	}
	n := &node{dir: member.Dir(filepath.Join(m.dir, fmt.Sprint(i))), self: member.Node{Name: fmt.Sprintf("n%d", i+1), Address: "127.0.0.1", Port: port}}
	if i == 0 {
		err = n.dir.Init("evidence", n.self, member.DefaultPace, member.DefaultQuota)
	} else {
		var token string
		if token, err = m.all[0].dir.NewToken(ctx, m.once, time.Minute); err == nil {
			err = n.dir.Join(ctx, token, n.self, func(error) {})
		}
	}
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(m.dir, n.self.Name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	n.cmd = exec.Command(program, "run", "--dir", string(n.dir))
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		return err
	}
	m.all = append(m.all, n)
	if i == 0 {
		if m.once, err = n.open(); err != nil {
			return err
		}
	}
	return within(ctx, fmt.Sprintf("%d members with a vote", i+1), func() bool { return m.voters(ctx) == i+1 })
}

func (m *members) voters(ctx context.Context) (count int) {
	all, err := m.once.Members(ctx)
	for _, one := range all {
		if err == nil && !one.Learner && one.Name != "" {
			count++
		}
	}
	return count
}

// open opens the state as the node does.
func (n *node) open() (*etcd.State, error) {
	o, err := n.dir.Options()
	if err != nil {
		return nil, err
	}
	return etcd.Open(o)
}

// leader is the node whose etcd leads.
func (m *members) leader(ctx context.Context) (*node, error) {
	var found *node
	return found, within(ctx, "a leader", func() bool {
		for _, n := range m.all {
			st, err := m.once.Status(ctx, fmt.Sprintf("https://127.0.0.1:%d", n.self.Port+1))
			if err == nil && st.Leader == st.Header.Member && st.Leader != 0 {
				found = n
				return true
			}
		}
		return false
	})
}

// killEtcd kills a node's etcd, which its keeper starts again.
func (n *node) killEtcd() error {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", n.cmd.Process.Pid))
	if err != nil {
		return err
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, word := range strings.Fields(string(text)) {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err == nil {
				return syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	return errors.New("the node has no etcd")
}

// within waits until holds returns true.
func within(ctx context.Context, what string, holds func() bool) error {
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("has not happened: %s", what)
		}
	}
	return nil
}

// threePorts returns the first of three free ports in a row.
func threePorts() (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if !slices.ContainsFunc([]int{port, port + 1, port + 2}, taken) {
			return port, nil
		}
	}
	return 0, errors.New("found no three free ports in a row")
}

func taken(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		l.Close()
	}
	return err != nil
}
