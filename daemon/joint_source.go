package daemon

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"lunar/cluster"
	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/control/server"
	"lunar/internal/version"
)

const (
	// verdictTime is how long nodes may take to say what a revision changes there.
	verdictTime = 10 * time.Second
	// followTime is how long it is waited for nodes to follow a revision. Who takes longer
	// follows all the same.
	followTime = 10 * time.Second
)

const jointRefused = "the cluster's configuration was not changed"

// ClusterRevisions implements server.Source.
func (s *source) ClusterRevisions() ([]control.ClusterRevision, error) {
	all, err := s.revisions()
	out := []control.ClusterRevision{}
	for _, d := range all {
		out = append(out, s.revisionOf(d))
	}
	return out, err
}

// revisions are those that the cluster's state has. One that cannot be read is left out.
func (s *source) revisions() ([]*revisions.Document, error) {
	m := s.daemon.member
	if m == nil {
		return nil, noCluster()
	}
	ctx, cancel := context.WithTimeout(s.changes.life, m.conf.Lease)
	defer cancel()
	all, err := m.documents.History(ctx)
	if passing(err) {
		return nil, &control.Refusal{What: "the revisions of the cluster's configuration are not known", State: true, Reasons: []control.Reason{{Text: err.Error()}}}
	}
	return all, nil
}

func (s *source) revisionOf(d *revisions.Document) control.ClusterRevision {
	now := s.daemon.joint()
	return control.ClusterRevision{Revision: d.Revision, At: d.At, By: d.By, Node: d.Node, What: d.What, Now: now != nil && now.ID == d.ID}
}

// ClusterRevision implements server.Source.
func (s *source) ClusterRevision(revision int64) (control.ClusterRevision, error) {
	d, err := s.revision(revision)
	if err != nil {
		return control.ClusterRevision{}, err
	}
	out := s.revisionOf(d)
	if out.Text, err = shownText(newDocument(d.Text)); err == nil {
		out.Text = fmt.Sprintf("%s%d\n%s", revisionMark, d.Revision, revisionLine.ReplaceAllString(out.Text, ""))
	}
	return out, err
}

// revision is one of a number; 0 is that which is in force.
func (s *source) revision(revision int64) (*revisions.Document, error) {
	if now := s.daemon.joint(); now != nil && (revision == 0 || revision == now.Revision) {
		return now.Document, nil
	}
	all, err := s.revisions()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(d *revisions.Document) bool { return d.Revision == revision })
	if i < 0 {
		return nil, &control.Refusal{What: "there is no such revision", Missing: true, Reasons: []control.Reason{{Place: "revision", Text: fmt.Sprintf("found no revision %d of the cluster's configuration, expected one of lunar cluster config history", revision)}}}
	}
	return all[i], nil
}

// revisionMark begins the text of a revision as it is shown, and is followed by its number: who
// changes the text and applies it means that revision.
const revisionMark = "# The cluster's configuration, revision "

var revisionLine = regexp.MustCompile(`(?m)\A` + revisionMark + `(\d+)\n`)

// ApplyInCluster implements server.Source.
func (s *source) ApplyInCluster(by server.Asker, f control.ClusterFile) (control.ClusterApplied, error) {
	m := s.daemon.member
	if m == nil {
		return control.ClusterApplied{}, noCluster()
	}
	ctx, cancel := context.WithTimeout(s.changes.life, verdictTime+followTime+m.conf.Hold)
	defer cancel()
	if err := s.placed(); err != nil {
		return control.ClusterApplied{}, err
	}
	d, expected, err := s.documentOf(ctx, by, f)
	if err != nil {
		return control.ClusterApplied{}, err
	}
	if err := s.tooOld(); err != nil {
		return control.ClusterApplied{}, err
	}
	if now := m.joint.Load(); !f.DryRun && now != nil && bytes.Equal(now.Text, d.Text) && m.inForce(ctx, now) {
		return control.ClusterApplied{Revision: now.Revision, Unchanged: true, Nodes: []control.ClusterVerdict{}}, nil
	}
	if err := by.Begin(); err != nil {
		return control.ClusterApplied{}, err
	}
	p, err := m.documents.Propose(ctx, d, m.newestKnown(), expected)
	if err != nil {
		return control.ClusterApplied{}, ofState(err)
	}
	defer p.End()
	verdicts, err := s.judged(ctx, by, p)
	if err != nil {
		return control.ClusterApplied{}, err
	}
	out := control.ClusterApplied{Revision: d.Revision, DryRun: f.DryRun, Nodes: verdicts}
	if err := refusedBy(verdicts, conf.Allowed{Yes: f.Yes, Shrink: f.AllowShrink}, f.DryRun); err != nil || f.DryRun {
		return out, err
	}
	before := *s.daemon.member.known.Load()
	if err := p.Commit(ctx); err != nil {
		return control.ClusterApplied{}, ofState(err)
	}
	s.followed(ctx, by, d.Revision, out.Nodes, before)
	return out, nil
}

// placed refuses a change while this node has no place in its cluster: it does not know yet whom it
// would have to ask.
func (s *source) placed() error {
	m, why := s.daemon.member, "it has not joined yet"
	if n := s.daemon.joined(); n != nil {
		st, err := n.Status()
		if _, lives := st.Nodes[m.conf.Node]; err == nil && lives {
			return nil
		}
		why = cmp.Or(st.Alone, "it does not know yet which nodes live")
	}
	return &control.Refusal{What: jointRefused, State: true, Reasons: []control.Reason{{Text: "this node has no place in its cluster: " + why}}}
}

// inForce reports whether what this node goes by is the newest revision, by which all nodes go that
// live. Its text as a revision of its own would push an older one out of those that are kept, each
// time that somebody makes sure of it.
func (m *membership) inForce(ctx context.Context, now *joint) bool {
	if m.whyBehind() != "" {
		return false
	}
	for _, p := range *m.known.Load() {
		if p.Config == nil || p.Config.Revision != now.Revision || p.Config.Behind != "" {
			return false
		}
	}
	newest, err := m.documents.Newest(ctx)
	return err == nil && newest != nil && newest.ID == now.ID
}

// newestKnown is the highest revision that a node has: the state may have been restored from a
// backup that has less.
func (m *membership) newestKnown() int64 {
	newest := m.joint.Load().revision()
	for _, p := range *m.known.Load() {
		if p.Config != nil {
			newest = max(newest, p.Config.Revision)
		}
	}
	return newest
}

// documentOf is what a request asks for, and the revision that it means; 0: any.
func (s *source) documentOf(ctx context.Context, by server.Asker, f control.ClusterFile) (d *revisions.Document, expected int64, err error) {
	m := s.daemon.member
	d = &revisions.Document{ID: rand.Text(), At: time.Now().UTC(), By: by.By, Node: m.conf.Node, Lunar: version.Number, What: "apply " + f.Name, Shrink: f.AllowShrink, Text: []byte(f.Text)}
	if expected = f.Expected; f.Rollback > 0 {
		was, err := s.revision(f.Rollback)
		if err != nil {
			return nil, 0, err
		}
		d.What, d.Text = fmt.Sprintf("roll back to revision %d", f.Rollback), was.Text
		return d, expected, nil
	}
	if mark := revisionLine.FindSubmatch(d.Text); mark != nil {
		d.Text = d.Text[len(mark[0]):]
		if expected == 0 {
			expected, _ = strconv.ParseInt(string(mark[1]), 10, 64) // of digits; one that is too large is no revision
		}
	}
	if err := revisions.CheckLength(d.Text); err != nil {
		return nil, 0, ofState(err)
	}
	text, err := conf.ParseJoint(f.Name, d.Text)
	if err == nil && text.Empty() {
		err = errors.New("found an empty file, expected a configuration; a file that was cut off must not remove what is served")
	}
	if err != nil {
		return nil, 0, asRefusal(f.Name, err)
	}
	return s.withSecretsOf(ctx, d, expected)
}

// withSecretsOf fills in what the text withholds, by the newest revision, which the request then
// means: another one may have other secrets. The one in force here may be older than that.
func (s *source) withSecretsOf(ctx context.Context, d *revisions.Document, expected int64) (*revisions.Document, int64, error) {
	was := s.daemon.joint()
	newest, err := s.daemon.member.documents.Newest(ctx)
	if passing(err) {
		return nil, 0, ofState(err)
	}
	if err == nil && newest != nil && newest.Revision >= was.revision() {
		if c, err := jointOf(newest); err == nil { // else another version has made it
			was = c
		}
	}
	if was == nil {
		return d, expected, nil
	}
	text, err := withJointSecrets(d.Text, was.tree)
	if !bytes.Equal(text, d.Text) {
		expected = cmp.Or(expected, was.Revision)
		if err == nil && expected != was.Revision { // of which another node may know, and this one not
			err = ofState(revisions.Stale(was.Revision, expected))
		}
	}
	d.Text = text
	return d, expected, err
}

// withJointSecrets gives users the secrets that they have, where the text withholds them.
func withJointSecrets(text []byte, was edit.Object) ([]byte, error) {
	parsed, err := edit.Parse(text)
	if err != nil {
		return text, nil // conf.ParseWith reads more than edit does, and says what is wrong
	}
	tree := parsed.Tree()
	groups, _ := tree["auth-groups"].(edit.Object)
	for name, one := range groups {
		group, ok := one.(edit.Object)
		if !ok {
			continue
		}
		path := []string{"auth-groups", name}
		before, _ := edit.Get(was, path...)
		if tree, err = edit.Set(tree, withSecrets(path, group, before), path...); err != nil {
			return nil, conflict(err.Error())
		}
	}
	filled, err := parsed.Become(tree)
	if err != nil {
		return nil, conflict(err.Error())
	}
	return filled.Text(), nil
}

// ofState makes a refusal of an error of the cluster's state.
func ofState(err error) error {
	what := jointRefused
	if errors.Is(err, cluster.ErrUnknown) {
		what = "it is not known whether the cluster's configuration was changed (lunar cluster config history tells)"
	}
	stale := errors.Is(err, cluster.ErrConflict)
	why := err.Error()
	if stale {
		why += "; change the text that lunar cluster config show prints now, or take the line of its revision out of a file that you keep"
	}
	return &control.Refusal{What: what, State: true, Stale: stale, Reasons: []control.Reason{{Text: why}}}
}

// judged is what the living nodes say to a proposal. It fails if one says nothing.
func (s *source) judged(ctx context.Context, by server.Asker, p *revisions.Proposal) ([]control.ClusterVerdict, error) {
	ctx, cancel := context.WithTimeout(ctx, verdictTime)
	defer cancel()
	ended := awaits(by, "nodes say what it changes")
	defer ended()
	said, err := p.Verdicts(ctx, s.living)
	if err != nil {
		return nil, ofState(err)
	}
	out := []control.ClusterVerdict{}
	r := &control.Refusal{What: jointRefused, State: true}
	for _, node := range s.living() {
		var v control.ClusterVerdict
		if json.Unmarshal(said[node], &v) != nil {
			r.Reasons = append(r.Reasons, control.Reason{Place: "node " + node, Text: fmt.Sprintf("it has not answered within %v: a change may be under way there, or the node be about to die", verdictTime)})
			continue
		}
		out = append(out, v)
	}
	if len(r.Reasons) > 0 {
		return nil, r
	}
	return out, nil
}

// tooOld refuses a revision where a living node would not hear of it.
func (s *source) tooOld() error {
	r, known := &control.Refusal{What: jointRefused, State: true}, *s.daemon.member.known.Load()
	for _, node := range s.living() {
		if about, told := known[node]; told && about.Config == nil {
			r.Reasons = append(r.Reasons, control.Reason{Place: "node " + node, Text: fmt.Sprintf("found Lunar %s, which knows no configuration of the cluster: upgrade it first", about.Lunar)})
		}
	}
	if r.Reasons == nil {
		return nil
	}
	return r
}

// living are the nodes that live.
func (s *source) living() []string {
	out := []string{s.daemon.member.conf.Node}
	if n := s.daemon.joined(); n != nil {
		if st, err := n.Status(); err == nil {
			out = append(out, slices.Collect(maps.Keys(st.Nodes))...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refusedBy are the reasons of nodes; a dry run tells what has to be allowed instead of
// refusing it.
func refusedBy(verdicts []control.ClusterVerdict, allowed conf.Allowed, dry bool) error {
	r := &control.Refusal{What: jointRefused, State: true}
	for i := range verdicts {
		v := &verdicts[i]
		for _, reason := range v.Reasons {
			r.Reasons = append(r.Reasons, control.Reason{Place: "node " + v.Node, Text: reason})
		}
		for j := range v.Impacts {
			one := &v.Impacts[j]
			if one.Permitted = one.Needs == "" || one.Needs == control.NeedsYes && allowed.Yes || slices.Contains(allowed.Shrink, one.Volume); one.Permitted || dry {
				continue
			}
			place := one.Needs
			if one.Volume != "" {
				place += "." + one.Volume
			}
			r.Reasons = append(r.Reasons, control.Reason{Place: place, Text: fmt.Sprintf("node %s: %s: %s", v.Node, one.Key, one.What)})
		}
	}
	if r.Reasons == nil {
		return nil
	}
	return r
}

// followed waits for some time until the nodes have a revision in force, or another reason not
// to have one than before, and notes which have.
func (s *source) followed(ctx context.Context, by server.Asker, revision int64, nodes []control.ClusterVerdict, before peers) {
	ctx, cancel := context.WithTimeout(ctx, followTime)
	defer cancel()
	defer awaits(by, "nodes put it into force")()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		known, open := *s.daemon.member.known.Load(), false
		for i := range nodes {
			at := known[nodes[i].Node].Config
			nodes[i].Applied = at != nil && at.Revision >= revision
			nodes[i].Behind = ""
			if was := before[nodes[i].Node].Config; !nodes[i].Applied && at != nil && (was == nil || *was != *at) {
				nodes[i].Behind = at.Behind
			}
			open = open || !nodes[i].Applied && nodes[i].Behind == ""
		}
		if !open {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
