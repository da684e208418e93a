package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lunar/cluster/etcd"
	"lunar/cluster/member"
)

// KillLeader kills the etcd that leads, which its keeper starts again, and returns when all
// members agree on a leader.
func (s *Site) KillLeader(after time.Duration) error {
	state, members, err := s.state()
	if err != nil {
		return err
	}
	defer state.Close()
	leader := -1
	if err := eventually("a leader", func() (err error) {
		leader, err = leaderOf(state, members)
		return err
	}); err != nil {
		return err
	}
	if err := s.signalChildren(s.members[leader].Process.Pid, syscall.SIGKILL); err != nil {
		return err
	}
	time.Sleep(after)
	return eventually("a leader that all members know", func() error {
		_, err := leaderOf(state, members)
		return err
	})
}

// state is etcd as the first node sees it, with the URLs of all members.
func (s *Site) state() (*etcd.State, []string, error) {
	var members []string
	var first etcd.Options
	for i, n := range s.Nodes {
		o, err := member.Dir(filepath.Join(n.State, "etcd")).Options()
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			first = o
		}
		members = append(members, o.Members[0]) // its own
	}
	state, err := etcd.Open(first)
	return state, members, err
}

// leaderOf is the number of the member that leads, if all say the same.
func leaderOf(state *etcd.State, members []string) (int, error) {
	leader, leading := -1, uint64(0)
	for i, url := range members {
		says, err := state.Status(context.Background(), url)
		if err != nil {
			return 0, err
		}
		if says.Leader == 0 || leading != 0 && says.Leader != leading {
			return 0, fmt.Errorf("member %d: found leader %x, expected %x", i, says.Leader, leading)
		}
		leading = says.Leader
		if says.Header.Member == leading {
			leader = i
		}
	}
	if leader < 0 {
		return 0, fmt.Errorf("found leader %x, which is none of the members", leading)
	}
	return leader, nil
}

// signalChildren reaches etcd, which its keeper may have put into a group of its own. Any thread
// of the keeper's may have started it.
func (s *Site) signalChildren(pid int, signal syscall.Signal) error {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		text, e := os.ReadFile(task)
		err = errors.Join(err, e)
		for _, child := range strings.Fields(string(text)) {
			n, e := strconv.Atoi(child)
			err = errors.Join(err, e, syscall.Kill(n, signal))
		}
	}
	return err
}
