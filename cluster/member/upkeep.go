package member

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
)

// view is what upkeep decides by.
type view struct {
	own     etcd.Status
	quota   int64
	members []etcd.Member
	alarms  []etcd.Alarm
}

// A file is full when what is of use comes near the quota, and loose when it has more room
// than that, and is not small.
const (
	fullPart  = 0.9
	looseSize = 64 << 20
)

func (v view) full() bool { return float64(v.own.InUse) > fullPart*float64(v.quota) }

func (v view) loose() bool { return v.own.Size > looseSize && v.own.InUse < v.own.Size/2 }

// raised is this member's alarm for want of space; any is that of whichever member.
func (v view) raised() (own *etcd.Alarm, any bool) {
	for i, a := range v.alarms {
		if a.Kind != etcd.NoSpace {
			continue
		}
		if any = true; a.Member == v.own.Header.Member {
			own = &v.alarms[i]
		}
	}
	return own, any
}

// learners are members that have started and have no vote yet.
func (v view) learners() []etcd.Member {
	return slices.DeleteFunc(slices.Clone(v.members), func(m etcd.Member) bool { return !m.Learner || m.Name == "" })
}

// step is what a member does for its upkeep.
type step int

const (
	rest       step = iota
	reclaim         // the file has reached its quota: forget the history, write it anew
	disarm          // there is room again: end the alarm
	tellFull        // there is none: somebody has to
	defragment      // much of the file is not in use
)

// next decides. reclaimed is the revision up to which history was forgotten for an alarm:
// while there is one, deletions alone raise the revision, and make room.
func (v view) next(reclaimed int64) step {
	own, any := v.raised()
	switch {
	case any && reclaimed != v.own.Header.Revision:
		return reclaim
	case any && v.full():
		return tellFull
	case own != nil:
		return disarm
	case !any && v.loose():
		return defragment
	}
	return rest
}

// upkeep keeps a member in order.
type upkeep struct {
	dir       Dir
	settings  Settings
	state     *etcd.State
	log       *slog.Logger
	ready     func()
	reclaimed int64     // a revision
	told      time.Time // of a full state
	renewed   time.Time // when it was looked at the certificate
	unnoted   bool      // the members could not be noted, which was told
}

const (
	interval  = 2 * time.Second
	tellAgain = 10 * time.Minute
	lookAgain = time.Minute // at the certificate: the clock may have been put right
)

func (u *upkeep) run(ctx context.Context) {
	failing := true
	u.renewed = time.Now() // by who started this
	for {
		u.renew(time.Now())
		v, err := u.look(ctx)
		if err == nil {
			if u.ready != nil {
				u.ready()
				u.ready = nil
			}
			err = u.do(ctx, v)
		}
		if ctx.Err() != nil {
			return
		}
		wait := interval
		switch {
		case err != nil && !failing:
			u.log.Warn("the cluster's state does not answer", "err", err)
		case err == nil && failing:
			u.log.Info("the cluster's state answers")
		case failing:
			wait /= 10
		}
		failing = err != nil
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// renew has the node have a certificate that lasts.
func (u *upkeep) renew(now time.Time) {
	if now.Sub(u.renewed) < lookAgain {
		return
	}
	u.renewed = now
	if err := u.dir.Renew(now); err != nil {
		u.log.Error("the node's certificate could not be renewed", "err", err)
	}
}

func (u *upkeep) look(ctx context.Context) (v view, err error) {
	v.quota = u.settings.Quota
	if v.own, err = u.state.Status(ctx, u.settings.Node.client()); err != nil {
		return v, err
	}
	if v.members, err = u.state.Members(ctx); err != nil {
		return v, err
	}
	v.alarms, err = u.state.Alarms(ctx)
	return v, err
}

func (u *upkeep) do(ctx context.Context, v view) error {
	if !v.own.Learner {
		for _, m := range v.learners() {
			if err := u.state.Promote(ctx, m.ID); err == nil {
				u.log.Info("a node of the cluster has its vote", "node", m.Name)
			}
		}
	}
	switch err := u.note(v.members); {
	case err == nil:
		u.unnoted = false
	case !u.unnoted: // and the state may need room all the more
		u.unnoted = true
		u.log.Error("the members of the cluster could not be noted", "file", settingsFile, "err", err)
	}
	switch v.next(u.reclaimed) {
	case reclaim:
		return u.reclaim(ctx, v)
	case disarm:
		own, _ := v.raised()
		u.log.Info("the cluster's state has room again", "bytes", v.own.Size, "in-use", v.own.InUse, "quota", v.quota)
		return u.state.Disarm(ctx, *own)
	case tellFull:
		if time.Since(u.told) > tellAgain {
			u.told = time.Now()
			u.log.Error("the cluster's state is full: nothing is written until something is deleted, or \"quota\" in "+settingsFile+" of every member is larger",
				"in-use", v.own.InUse, "quota", v.quota)
		}
	case defragment:
		return u.alone(ctx, func(ctx context.Context) error { return u.state.Defragment(ctx, u.settings.Node.client()) })
	}
	return nil
}

// note has the directory know that there is a cluster, and of members that came and went, for who
// opens the state while its own member is not there.
func (u *upkeep) note(members []etcd.Member) error {
	var others []string
	for _, m := range members {
		if !slices.Contains(m.Clients, u.settings.Node.client()) && !m.Learner {
			others = append(others, m.Clients...)
		}
	}
	slices.Sort(others)
	if slices.Equal(others, u.settings.Clients) && u.settings.Joined {
		return nil
	}
	next := u.settings
	next.Clients, next.Joined = others, true
	err := u.dir.writeJSON(settingsFile, next)
	if err == nil { // else it is tried again
		u.settings = next
	}
	return err
}

// reclaim is the answer to a file that has reached its quota. All members may do it at
// once: nothing can be written now anyway.
func (u *upkeep) reclaim(ctx context.Context, v view) error {
	u.log.Warn("the cluster's state has reached its quota: nothing is written until there is room; its history is forgotten and its file written anew", "bytes", v.own.Size, "in-use", v.own.InUse, "quota", v.quota)
	err := u.state.Compact(ctx, cluster.Revision(v.own.Header.Revision))
	if err != nil && !errors.Is(err, cluster.ErrCompacted) { // another member was first
		return err
	}
	if err := u.state.Defragment(ctx, u.settings.Node.client()); err != nil {
		return err
	}
	u.reclaimed = v.own.Header.Revision
	return nil
}

// alone does what one member at a time may do, if no other does it now.
func (u *upkeep) alone(ctx context.Context, do func(context.Context) error) error {
	err := turn(ctx, u.state, keysOf(u.settings.Cluster)+"defragment", u.settings.Node.Name, time.Minute, do)
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}
