package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"lunar/cluster/node"
	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/volumes"
)

// follower has a node go by what the cluster's state has of the configuration.
type follower struct{ *applier }

// retryTime is after how long a revision is tried again that could not be put into force.
const retryTime = 30 * time.Second

// followJoint goes by the cluster's configuration until ctx ends.
func (a *applier) followJoint(ctx context.Context) {
	m := a.daemon.member
	m.beside.Go(func() { m.documents.Follow(ctx, m.conf.Node, follower{a}) })
	m.beside.Go(func() {
		tick := time.NewTicker(retryTime)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			case <-m.retry:
			}
			if m.whyBehind() != "" {
				_ = a.catchUp(ctx)
			}
		}
	})
}

// catchUp puts the newest revision into force, before the node has its place in the cluster.
// An error is the state's: it does not answer.
func (a *applier) catchUp(ctx context.Context) error {
	d, err := a.daemon.member.documents.Newest(ctx)
	switch {
	case passing(err):
		return err
	case err != nil:
		follower{a}.Unreadable(err)
	case d != nil:
		follower{a}.Follow(d)
	}
	return nil
}

// Unreadable implements revisions.Follower.
func (f follower) Unreadable(err error) { f.daemon.member.complainOfJoint(err) }

// Follow implements revisions.Follower.
func (f follower) Follow(d *revisions.Document) {
	m := f.daemon.member
	m.following.Lock()
	defer m.following.Unlock()
	now := m.joint.Load()
	switch {
	case now != nil && now.ID == d.ID:
		m.complainOfJoint(nil)
		return
	case d.Revision < now.revision():
		m.complainOfJoint(goesBack(d.Revision, now.revision()))
		return
	}
	applied, err := f.putJoint(server.Asker{By: d.By}, d, conf.Allowed{Yes: true, Shrink: d.Shrink}, false)
	if f.life.Err() != nil {
		return // the server is stopping
	}
	m.complainOfJoint(err)
	if err == nil {
		m.log.Info("the cluster's configuration is in force", "revision", d.Revision, "by", d.By, "at node", d.Node, "what", d.What, "changes", len(applied.Changes))
	}
	m.look() // others are to know
}

// Judge implements revisions.Follower.
func (f follower) Judge(_ context.Context, d *revisions.Document) json.RawMessage {
	out := control.ClusterVerdict{Node: f.daemon.member.conf.Node, Changes: []string{}, Warnings: []string{}, Impacts: []control.Impact{}, Reasons: []string{}}
	applied, err := f.putJoint(server.Asker{By: d.By}, d, conf.Allowed{}, true)
	if here := f.daemon.joint().revision(); err == nil && d.Revision <= here {
		err = goesBack(d.Revision, here)
	}
	var r *control.Refusal
	switch {
	case errors.As(err, &r):
		for _, reason := range r.Reasons {
			out.Reasons = append(out.Reasons, reason.String())
		}
		if len(r.Reasons) == 0 {
			out.Reasons = append(out.Reasons, r.What)
		}
	case err != nil:
		out.Reasons = append(out.Reasons, err.Error())
	default:
		out.Changes, out.Warnings, out.Impacts = applied.Changes, applied.Warnings, applied.Impacts
	}
	text, err := json.Marshal(&out)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return text
}

// putJoint puts a revision of the cluster's configuration into force, together with what is
// running of the node's own.
func (a *applier) putJoint(by server.Asker, d *revisions.Document, allowed conf.Allowed, dry bool) (control.Applied, error) {
	name := revisions.Name(d.Revision)
	c, err := jointOf(d)
	if err != nil {
		return control.Applied{}, asRefusal(name, err)
	}
	if err := a.lock(by); err != nil {
		return control.Applied{}, err
	}
	defer a.changing.Unlock()
	cfg, warnings, err := conf.ParseWith(a.ownName(), a.texts.Load().running.text, c.text)
	if err == nil {
		err = a.serve.override(cfg, a.dir)
	}
	if err != nil {
		return control.Applied{}, asRefusal(name, err)
	}
	return a.force(request{by: by, name: name, warnings: warnings, dry: dry, allowed: allowed, joint: c}, cfg)
}

// ownName is what messages call the node's own configuration.
func (a *applier) ownName() string {
	if a.serve.Config == "" {
		return "the node's own configuration"
	}
	return a.serve.Config
}

// jointInForce notes what the node's file says together with a revision that was put into force.
func (a *applier) jointInForce(c *joint) {
	a.daemon.tellOf(func(*conf.Volume) bool { return true }) // by which revision it knows them
	file := a.texts.Load().file
	if file == nil {
		return
	}
	cfg, _, err := conf.ParseWith(a.ownName(), file.text, c.text)
	if err == nil {
		err = a.serve.override(cfg, a.dir)
	}
	if err != nil { // what is running is not the file's, which drift shows
		a.log.Warn("the configuration file does not go together with the cluster's configuration", "revision", c.Revision, "err", err)
		return
	}
	a.inFile(cfg)
}

// joinCluster has the node take part, and waits for some time until it is decided who owns
// which volume: initiators that come before would not learn the size.
func (a *applier) joinCluster(cfg *conf.Config) error {
	d, m := a.daemon, a.daemon.member
	if m == nil {
		return nil
	}
	own := m.told()
	if err := errors.Join(own.fits(), m.clash(&own)); err != nil {
		return err
	}
	able := &judgement{unable: m.unableOf(cfg, d.Set, nil)} // headers are not known yet
	m.tellUnable(nil, able.unable)
	m.judged.Store(able)
	n := node.Start(node.Config{
		State: m.state, Keys: m.keys(), Node: m.conf.Node, Incarnation: m.incarnation, Links: m.links, About: own.encode(), Unable: able.unable,
		Lease: m.conf.Lease, Suspect: m.conf.Suspect, Hold: stepTime, Mute: muteTime, Logger: m.log,
		Changed: m.look, Before: a.catchUp,
	})
	m.node.Store(n)
	m.takeRelayed(d.Server)
	d.openPromise()
	m.startLinks()
	if m.keeper != nil {
		m.keeper.Start()
	}
	m.beside.Go(func() { d.followPeers(m.shared.Life) })
	m.beside.Go(func() { m.serveSevers(m.shared.Life) })
	m.beside.Go(func() { m.watchRoom(m.shared.Life) })
	a.followJoint(m.shared.Life)
	ours := map[string]*volumes.Shared{} // whoever decides about the others may not live
	for i := range cfg.Volumes {
		if v := &cfg.Volumes[i]; v.Clustered() {
			if v.OwnedBy(m.conf.Node) {
				ours[v.Name] = d.assembly.Open[v.Name].Shared
			}
			if err := m.add(v, d.assembly.Open[v.Name].Shared, m.joint.Load()); err != nil {
				return err
			}
		}
	}
	m.awaitDecisions(ours)
	return nil
}
