package daemon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/control/server"
)

// makeOne makes changes of objects. The caller holds the changes.
func (a *applier) makeOne(by server.Asker, c control.Changes) (control.Changed, error) {
	t := a.texts.Load()
	running, err := a.edited(t.running, c.Edits, true)
	if err != nil {
		return control.Changed{}, err
	}
	e := &editing{by: by, objects: c.Edits, path: a.serve.Config, running: running}
	cfg, warnings, err := a.parseEdited(running)
	if err != nil {
		return control.Changed{}, stillUsed(err, c.Edits)
	}
	if c.Keep != control.KeepRunning {
		if err := a.editFile(e, t, c.Edits, cfg); err != nil {
			return control.Changed{}, err
		}
	}
	out, err := a.forceEdited(e, told(c.Edits), c.Permissions, warnings, cfg)
	if err == nil {
		out.ETag = a.etagOf(running.Tree(), c.Edits)
	}
	return out, err
}

// stillUsed says of an object that cannot be removed why it cannot: the mistakes that there
// would be are at the places that refer to it.
func stillUsed(err error, edits []control.Edit) error {
	if r, ok := err.(*control.Refusal); ok && len(edits) == 1 && edits[0].Remove {
		text := "found what refers to it, expected nothing: take it away there first"
		r.Reasons = append([]control.Reason{{Place: conf.Key(edits[0].Path...), Text: text}}, r.Reasons...)
	}
	return err
}

// etagOf is that of the only object that was changed; empty: there are others, or it is
// gone.
func (a *applier) etagOf(tree edit.Object, edits []control.Edit) string {
	if len(edits) == 1 {
		if value, ok := edit.Get(tree, edits[0].Path...); ok {
			return a.etag(value)
		}
	}
	return ""
}

// forceEdited puts what comes of changes into force.
func (a *applier) forceEdited(e *editing, what string, p control.Permissions, warnings []conf.Warning, cfg *conf.Config) (control.Changed, error) {
	e.what, e.dir, e.allowed = what, a.dir, conf.Allowed{Yes: p.Yes, Shrink: p.AllowShrink}
	applied, err := a.force(request{by: e.by, name: "the change", warnings: warnings, dry: p.DryRun, allowed: e.allowed, edit: e}, cfg)
	return control.Changed{Applied: applied, Generation: e.generation}, err
}

// whole puts a whole text into force and into the file.
func (a *applier) whole(by server.Asker, what string, d *edit.Document, p control.Permissions) (control.Changed, error) {
	t := a.texts.Load()
	if t.file == nil {
		return control.Changed{}, conflict("the server was started without a configuration file")
	}
	cfg, warnings, err := a.parseEdited(d)
	if err != nil {
		return control.Changed{}, err
	}
	return a.forceEdited(&editing{by: by, path: a.serve.Config, running: d, was: t.file, file: d, fileConfig: cfg}, what, p, warnings, cfg)
}

// editFile makes the changes of the file's text, too.
func (a *applier) editFile(e *editing, t *texts, edits []control.Edit, cfg *conf.Config) (err error) {
	if t.file == nil {
		return conflict("the server was started without a configuration file, so a change can only be kept until the next start: keep=running (lunar: --temporary, lunar create: --keep running)")
	}
	e.was, e.file, e.fileConfig = t.file, e.running, cfg
	if t.file == t.running {
		return nil
	}
	if e.file, err = a.edited(t.file, edits, false); err == nil {
		e.fileConfig, _, err = a.parseEdited(e.file)
	}
	if err != nil {
		return conflict(fmt.Sprintf("what is running is not what %s has (lunar status shows the drift), and there the change is not possible: %v", a.serve.Config, oneLineOf(err)))
	}
	return nil
}

func oneLineOf(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// edited is a document with the changes. Conditions are those of the text that runs.
func (a *applier) edited(of *document, edits []control.Edit, conditions bool) (*edit.Document, error) {
	d, err := of.parse()
	if err != nil {
		return nil, conflict("the text of the configuration: " + err.Error())
	}
	tree, err := a.editedTree(d.Tree(), edits, conditions)
	if err != nil {
		return nil, err
	}
	out, err := d.Become(tree)
	if err != nil {
		return nil, conflict(err.Error())
	}
	return out, nil
}

func (a *applier) editedTree(tree edit.Object, edits []control.Edit, conditions bool) (_ edit.Object, err error) {
	for i := range edits {
		e := &edits[i]
		if err := checkPath(e.Path); err != nil {
			return nil, err
		}
		if c := a.daemon.joint(); c.has(e.Path) {
			return nil, ofCluster(c, e.Path)
		}
		value, there := edit.Get(tree, e.Path...)
		if conditions {
			if err := a.checkCondition(e, value, there); err != nil {
				return nil, err
			}
		}
		if err := checkOwner(tree, e.Path); err != nil {
			return nil, err
		}
		if tree, err = oneEdit(tree, e, value, there); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// ofCluster refuses to change an object of the cluster's configuration on one node.
func ofCluster(c *joint, path []string) error {
	return conflict(fmt.Sprintf("%s is in %s, which all nodes have: lunar cluster config show writes it, and lunar apply --cluster changes it", conf.Key(path...), revisions.Name(c.Revision)))
}

// checkOwner refuses an object of what is not there: a LUN of a target whose name has a typo
// would make that target, which everybody is admitted to.
func checkOwner(tree edit.Object, path []string) error {
	const owner, owned = 2, 4 // steps to the place of either
	if len(path) < owned {
		return nil
	}
	if _, there := edit.Get(tree, path[:owner]...); there {
		return nil
	}
	return noneOf(conf.Key(path[:owner]...))
}

// noneOf is the refusal for a place that has nothing.
func noneOf(key string) error {
	return &control.Refusal{What: editRefused, Missing: true, Reasons: []control.Reason{{Place: key, Text: "found none of that name in the configuration"}}}
}

// checkCondition compares the object with what it has to be.
func (a *applier) checkCondition(e *control.Edit, value any, there bool) error {
	stale := func(text string) error {
		return &control.Refusal{What: editRefused, Stale: true, Reasons: []control.Reason{{Place: conf.Key(e.Path...), Text: text}}}
	}
	switch {
	case e.IfNoneMatch != "" && there:
		return stale("found one, expected none")
	case e.IfMatch == "*" && !there:
		return stale("found none, expected one")
	case e.IfMatch != "" && e.IfMatch != "*" && (!there || e.IfMatch != a.etag(value)):
		return stale("found another ETag than that of If-Match: it was changed since it was read")
	}
	return nil
}

// oneEdit makes one change of a tree.
func oneEdit(tree edit.Object, e *control.Edit, value any, there bool) (edit.Object, error) {
	key := conf.Key(e.Path...)
	given := 0
	for _, is := range []bool{e.Set != nil, e.Merge != nil, e.Remove} {
		if is {
			given++
		}
	}
	var out edit.Object
	var err error
	switch {
	case given != 1:
		err = fmt.Errorf("found %d of set, merge and remove, expected one", given)
	case e.Set != nil:
		out, err = edit.Set(tree, withSecrets(e.Path, edit.Object(e.Set), value), e.Path...)
	case !there && (e.Remove || len(e.Path) > 1):
		return nil, noneOf(key)
	case e.Remove:
		out, err = edit.Remove(tree, e.Path...)
	default:
		out, err = edit.Merge(tree, withSecrets(e.Path, edit.Object(e.Merge), value), e.Path...)
	}
	if err != nil {
		return nil, &control.Refusal{What: editRefused, Reasons: []control.Reason{{Place: key, Text: err.Error()}}}
	}
	return out, nil
}

// editable are the places of objects; * is a name.
var editable = [][]string{
	{"volumes", "*"}, {"targets", "*"}, {"targets", "*", "luns", "*"}, {"auth-groups", "*"}, {"auth-groups", "*", "chap", "*"},
	{"portal-groups", "*"}, {"qos", "groups", "*"}, {"qos", "rules", "*"}, {"server"}, {"cache"}, {"log"}, {"discovery"}, {"qos"},
}

// checkPath refuses what is no place of an object.
func checkPath(path []string) error {
	for _, p := range editable {
		if len(p) != len(path) {
			continue
		}
		fits := true
		for i, step := range p {
			fits = fits && (step == "*" && path[i] != "" || step == path[i])
		}
		if fits {
			return nil
		}
	}
	return &control.Refusal{What: editRefused, Missing: true, Reasons: []control.Reason{{Place: "path", Text: "found a place that no object has"}}}
}

// parseEdited is the configuration of a changed text.
func (a *applier) parseEdited(d *edit.Document) (*conf.Config, []conf.Warning, error) {
	a.parsed.Joint = a.daemon.joint().config()
	cfg, warnings, err := a.parsed.Parse("the change", d.Text(), d.Begins())
	if err == nil {
		err = a.serve.override(cfg, a.dir)
	}
	if err == nil {
		return cfg, warnings, nil
	}
	r := &control.Refusal{What: editRefused}
	problems, ok := err.(conf.Errors)
	if !ok {
		r.Reasons = []control.Reason{{Text: err.Error()}}
	}
	for _, p := range problems {
		r.Reasons = append(r.Reasons, control.Reason{Place: p.Key, Text: "found " + p.Found + ", expected " + p.Expected})
	}
	return nil, nil, r
}

// etag is what tells a state of an object from others. Secrets are part of it, so it
// has a key that nobody knows.
func (a *applier) etag(value any) string {
	h := hmac.New(sha256.New, a.etags[:])
	h.Write(edit.Digest(value))
	return `"` + hex.EncodeToString(h.Sum(nil)[:16]) + `"`
}
