package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/conf/edit"
	"lunar/daemon/state"
)

// joint is a revision of the cluster's configuration: what a server reads together with its
// own file.
type joint struct {
	*revisions.Document
	text *conf.Joint
	tree edit.Object // what it says
}

// jointOf reads a document.
func jointOf(d *revisions.Document) (*joint, error) {
	text, err := conf.ParseJoint(revisions.Name(d.Revision), d.Text)
	if err != nil {
		return nil, err
	}
	parsed, err := edit.Parse(d.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", revisions.Name(d.Revision), err)
	}
	return &joint{d, text, parsed.Tree()}, nil
}

// revision is 0 if there is none.
func (c *joint) revision() int64 {
	if c == nil {
		return 0
	}
	return c.Revision
}

// config is nil if there is none.
func (c *joint) config() *conf.Joint {
	if c == nil {
		return nil
	}
	return c.text
}

// has reports whether the object at a path is of the cluster's configuration.
func (c *joint) has(path []string) bool {
	if c == nil || len(path) < 2 {
		return false
	}
	n := 2
	if path[0] == "qos" {
		n = 3
	}
	_, there := edit.Get(c.tree, path[:min(n, len(path))]...)
	return there
}

// joint is what is in force of the cluster's configuration; nil: nothing.
func (d *daemon) joint() *joint {
	if d.member == nil {
		return nil
	}
	return d.member.joint.Load()
}

// recall finds the revisions that a start may go by, the newest first: that of the cluster's
// state, and that which was in force here last. The state does not go back: one that has an
// older revision has been restored.
func (m *membership) recall(stateDir string) (all []*joint, err error) {
	text, err := state.ClusterConfig(stateDir, m.conf.Named)
	if err != nil {
		return nil, err
	}
	var was *joint
	if text != nil {
		d, err := revisions.Decode(text)
		if err == nil {
			was, err = jointOf(d)
		}
		if err != nil {
			return nil, fmt.Errorf("the cluster's configuration in the state directory: %w", err)
		}
		m.keptID = d.ID
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.conf.Lease)
	defer cancel()
	var newest *joint
	d, err := m.documents.Newest(ctx)
	if err == nil && d != nil {
		newest, err = jointOf(d)
	}
	switch {
	case err != nil:
		m.complainOfJoint(fmt.Errorf("the cluster's configuration could not be read, and is as it was here last: %w", err))
	case newest.revision() < was.revision():
		m.complainOfJoint(goesBack(newest.revision(), was.revision()))
	case newest != nil:
		all = append(all, newest)
	}
	if was != nil && (newest == nil || newest.ID != was.ID || len(all) == 0) {
		all = append(all, was)
	}
	return all, nil
}

// goesBack is why an older revision is not put into force.
func goesBack(found, here int64) error {
	return fmt.Errorf("the cluster's state has revision %d of the configuration, as after a restore; here %d is in force: apply what lunar cluster config show prints on this node", found, here)
}

// complainOfJoint notes why the newest revision is not in force, and logs it once; nil: it is.
func (m *membership) complainOfJoint(err error) {
	text := ""
	if err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	if was := m.behind.Swap(&text); text != "" && (was == nil || *was != text) {
		m.log.Error("the cluster's configuration is not in force on this node", "error", err)
	}
}

// again has the newest revision be tried again, if it is not in force; nil does nothing.
func (m *membership) again() {
	if m == nil {
		return
	}
	select {
	case m.retry <- struct{}{}:
	default: // who tries next sees this, too
	}
}

// whyBehind is why the newest revision is not in force; empty: it is, as far as is known.
func (m *membership) whyBehind() string {
	if why := m.behind.Load(); why != nil {
		return *why
	}
	return ""
}

// parseAs is parse with the newest revision of the cluster's configuration that goes together
// with the file, and puts that into force.
func (k Options) parseAs(m *membership, f *conf.File, dir string) (loaded, error) {
	if m == nil {
		return k.parse(f, dir, nil)
	}
	all, err := m.recall(dir)
	if err != nil {
		return loaded{}, err
	}
	if len(all) == 0 {
		return k.parse(f, dir, nil)
	}
	var first error
	for _, c := range all {
		l, err := k.parse(f, dir, c.config())
		if err == nil {
			if m.joint.Store(c); first != nil {
				m.complainOfJoint(fmt.Errorf("the node's own file does not go together with %s: %w", revisions.Name(all[0].Revision), first))
			}
			return l, nil
		}
		if first == nil {
			first = err
		}
	}
	return loaded{}, first
}

// keepJoint notes the revision that is in force, for a start while the cluster's state does
// not answer. The caller holds the changes.
func (m *membership) keepJoint(stateDir string) {
	c := m.joint.Load()
	if c == nil || c.ID == m.keptID {
		return
	}
	text, err := c.Encode()
	if err == nil {
		err = state.KeepClusterConfig(stateDir, m.conf.Named, text)
	}
	if err != nil {
		m.log.Error("the cluster's configuration could not be noted: a start while the cluster's state does not answer has an older one", "err", err)
		return
	}
	m.keptID = c.ID
}

// passing reports whether the state did not answer, as it will again.
func passing(err error) bool { return err != nil && !errors.Is(err, revisions.ErrUnreadable) }

// with is a node's own tree with what is joint.
func (c *joint) with(own edit.Object) (edit.Object, error) {
	if c == nil {
		return own, nil
	}
	out := own
	for section, value := range c.tree {
		objects, mapping := value.(edit.Object)
		var err error
		switch {
		case !mapping:
		case section == "qos":
			out, err = withQoS(out, objects)
		default: // all at once: each Set copies the section
			was, _ := out[section].(edit.Object)
			both := make(edit.Object, len(was)+len(objects))
			maps.Copy(both, was)
			maps.Copy(both, objects)
			out, err = edit.Set(out, both, section)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// withQoS is with of the section that has lists of both.
func withQoS(own, joint edit.Object) (edit.Object, error) {
	for name, value := range joint {
		var err error
		if own, err = withKey(own, name, value); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// withKey is withQoS of one key.
func withKey(own edit.Object, name string, value any) (_ edit.Object, err error) {
	if name != "rules" && name != "groups" {
		return edit.Set(own, value, "qos", name)
	}
	for inner, one := range edit.Elements(name, value) {
		if own, err = edit.Set(own, one, "qos", name, inner); err != nil {
			break
		}
	}
	return own, err
}

// decided reports whether a key is one of the cluster's configuration. What becomes of it was
// judged where that was applied, also for a node that was away.
func (m *membership) decided(key string) bool {
	if m == nil {
		return false
	}
	c := m.joint.Load()
	if c == nil {
		return false
	}
	for section, value := range c.tree {
		for name := range edit.Elements(section, value) {
			if object := conf.Key(section, name); key == object || strings.HasPrefix(key, object+".") {
				return true
			}
		}
	}
	return false
}
