package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"lunar/cluster/etcd"
	"lunar/internal/durable"
)

// Keeper is the process that keeps a member.
type Keeper struct {
	Dir Dir
	// Etcd runs etcd with arguments: this program, as etcd.
	Etcd func(arguments ...string) *exec.Cmd
	Log  *slog.Logger
	// Messages gets what etcd logs.
	Messages io.Writer
	// Ready is called when the member answers for the first time; nil: nothing is.
	Ready func()
}

// ErrRuns says that a directory has a keeper already.
var ErrRuns = errors.New("the member runs already")

// Run keeps the member until ctx ends, or the cluster has removed it, or something cannot
// be mended by trying again. It fails with ErrRuns and ErrNoMember.
func (k *Keeper) Run(ctx context.Context) error {
	s, err := k.Dir.Settings()
	if err != nil {
		return err
	}
	unlock, err := k.Dir.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := k.Dir.Renew(time.Now()); err != nil {
		return err
	}
	o, err := k.Dir.Options()
	if err != nil {
		return err
	}
	o.Guard = "" // it is the guard
	state, err := etcd.Open(o)
	if err != nil {
		return err
	}
	defer state.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	failed := make(chan error, 2)
	all.Go(func() { failed <- newDoorman(k.Dir, s, state, k.Log).serve(ctx) })
	all.Go(func() { failed <- watchProcesses(ctx, k.Dir.Socket(), state, k.Log) })
	all.Go(func() { (&upkeep{dir: k.Dir, settings: s, state: state, log: k.Log, ready: k.Ready}).run(ctx) })
	removed := make(chan error, 1)
	all.Go(func() { removed <- k.keepEtcd(ctx, s, state) })
	select {
	case err := <-failed:
		return err
	case err := <-removed:
		return err
	}
}

// lock has this process be the only one that uses the member, until unlock. It fails with ErrRuns.
func (d Dir) lock() (unlock func(), err error) {
	lock, err := durable.Open(d.path(lockFile), os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("%s: %w", d, ErrRuns)
	}
	return func() { lock.Close() }, nil
}

const (
	soonest = 200 * time.Millisecond // until etcd is started again
	latest  = 5 * time.Second
	steady  = 30 * time.Second // that etcd has to run until it is thought to be well
)

// keepEtcd runs etcd, again and again, until ctx ends or the member was removed.
func (k *Keeper) keepEtcd(ctx context.Context, s Settings, state *etcd.State) error {
	var why string // it was told last
	var told time.Time
	for wait := soonest; ; wait = min(2*wait, latest) {
		began := time.Now()
		err := k.configure(ctx, s, state)
		if err == nil {
			err = k.runEtcd(ctx, etcdFile)
		}
		if ctx.Err() != nil {
			return nil
		}
		if k.wasRemoved(ctx, s, state) {
			k.Log.Warn("this node was removed from the cluster, and its copy of the state is put aside", "directory", string(k.Dir))
			return k.Dir.putAside(began)
		}
		if time.Since(began) > steady {
			wait = soonest
		}
		if text := fmt.Sprint(err); text != why || time.Since(told) > tellAgain {
			why, told = text, time.Now()
			k.Log.Error("etcd has ended, and is started again until it runs", "err", err, "after", wait)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// configure writes etcd's configuration. The first time that a node starts that has joined, etcd demands
// exactly the members that there are: since it was admitted, others may have come or left.
func (k *Keeper) configure(ctx context.Context, s Settings, state *etcd.State) error {
	if s.Joined && !k.Dir.hasBegun() {
		if members, err := state.Members(ctx); err == nil { // else it is tried with those of then
			s.Members = s.Node.others(members)
		}
	}
	return k.Dir.writeJSON(etcdFile, k.Dir.etcdSettings(s))
}

// hasBegun reports whether etcd knows its cluster by its log, which it makes after it has found the
// members.
func (d Dir) hasBegun() bool {
	logs, err := filepath.Glob(filepath.Join(d.path(dataDir), "member", "wal", "*.wal"))
	return err == nil && len(logs) > 0
}

// runEtcd runs etcd by a configuration until it ends, which it does with ctx: in order, then with the
// keeper.
func (k *Keeper) runEtcd(ctx context.Context, file string) error {
	runtime.LockOSThread() // the death of this thread is that of the parent to the kernel
	defer runtime.UnlockOSThread()
	cmd := k.Etcd("--config-file", k.Dir.path(file))
	told := newMessages(k.Messages, time.Now)
	cmd.Stdout, cmd.Stderr = told, told
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return err
	}
	const patience = 10 * time.Second
	defer context.AfterFunc(ctx, func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	})()
	return cmd.Wait()
}

// wasRemoved asks the other members whether this one is one of them. Its own etcd ends
// when it is not.
func (k *Keeper) wasRemoved(ctx context.Context, s Settings, state *etcd.State) bool {
	if s.Joined && !k.Dir.hasData() {
		return false // it has not been one yet
	}
	members, err := state.Members(ctx)
	return err == nil && !slices.ContainsFunc(members, func(m etcd.Member) bool { return slices.Contains(m.Peers, s.Node.peer()) })
}

func (d Dir) hasData() bool {
	_, err := os.Stat(d.path(dataDir))
	return err == nil
}

// putAside has the directory be none of a member any more. Nothing is deleted.
func (d Dir) putAside(now time.Time) error {
	mark := ".removed-" + now.UTC().Format("20060102T150405Z")
	for _, name := range []string{dataDir, settingsFile} {
		if err := os.Rename(d.path(name), d.path(name)+mark); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return durable.SyncDir(string(d))
}
