package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// kind is a kind of objects of the configuration.
type kind struct {
	name, what string   // in the names of operations, and in what they say of themselves
	list, one  string   // paths; an empty list: there is but one of each name
	steps      []string // where the configuration has one; parameters of the path are in braces
}

// kinds are all that can be created and changed.
var kinds = []kind{
	{"volume", "a volume", control.VolumesPath, control.VolumePath, []string{"volumes", "{name}"}},
	{"target", "a target", control.TargetsPath, control.TargetPath, []string{"targets", "{name}"}},
	{"lun", "a LUN of a target", control.LUNsPath, control.LUNPath, []string{"targets", "{name}", "luns", "{lun}"}},
	{"auth-group", "an auth group", control.AuthGroupsPath, control.AuthGroupPath, []string{"auth-groups", "{name}"}},
	{"user", "a user of an auth group", control.UsersPath, control.UserPath, []string{"auth-groups", "{name}", "chap", "{user}"}},
	{"portal-group", "a portal group", control.PortalGroupsPath, control.PortalGroupPath, []string{"portal-groups", "{name}"}},
	{"rule-group", "a group of initiators that rules are about", control.RuleGroupsPath, control.RuleGroupPath, []string{"qos", "groups", "{name}"}},
	{"settings", "the settings of a section: server, cache, log, discovery or qos", "", control.SettingsPath, []string{"{section}"}},
}

// parameters are those of a path.
func parameters(path string) (all []*huma.Param) {
	for _, part := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			all = append(all, &huma.Param{Name: name, In: "path", Required: true, Schema: &huma.Schema{Type: "string"}, Description: "Its " + name + ", or that of what it is of."})
		}
	}
	return all
}

// operation describes what is done with objects of a kind.
func (k *kind) operation(verb, method, path, summary string, steps []string) huma.Operation {
	return huma.Operation{
		OperationID: verb + "-" + k.name, Method: method, Path: path, Summary: summary, MaxBodyBytes: maxBody,
		Parameters: parameters(path), Metadata: map[string]any{"steps": steps},
	}
}

// ObjectPath is the place of an object in the configuration. It is exported for the
// reflection of huma.
type ObjectPath struct{ steps []string }

// Resolve implements huma.Resolver.
func (p *ObjectPath) Resolve(ctx huma.Context) []error {
	steps, _ := ctx.Operation().Metadata["steps"].([]string)
	p.steps = nil
	for _, step := range steps {
		if name, ok := strings.CutPrefix(step, "{"); ok {
			step = ctx.Param(strings.TrimSuffix(name, "}"))
		}
		p.steps = append(p.steps, step)
	}
	return nil
}

// ObjectChange is how an object is to be changed. It is exported for the reflection of
// huma.
type ObjectChange struct {
	ObjectPath
	DryRun      bool     `query:"dry-run" doc:"Show the changes without making them."`
	Yes         bool     `query:"yes" doc:"Allow changes that end sessions or leave data behind."`
	AllowShrink []string `query:"allow-shrink,explode" doc:"Names of volumes that may shrink, and lose the data behind their new end."`
	Keep        string   `query:"keep" enum:"file,running" doc:"file, the default: the change is written to the configuration file as well; running: it lasts until the next start."`
	IfMatch     string   `header:"If-Match" doc:"ETag that it must have; *: there must be one."`
	IfNoneMatch string   `header:"If-None-Match" doc:"*: there must be none."`
}

// changes are the change as the Source takes it.
func (c *ObjectChange) changes(e control.Edit) control.Changes {
	e.Path, e.IfMatch, e.IfNoneMatch = c.steps, c.IfMatch, c.IfNoneMatch
	return control.Changes{Edits: []control.Edit{e}, Permissions: control.Permissions{DryRun: c.DryRun, Yes: c.Yes, AllowShrink: c.AllowShrink, Keep: c.Keep}}
}

type writeRequest struct {
	ObjectChange
	Body control.Object
}

// Loggable is the request as a log may have it.
func (r *writeRequest) Loggable() any {
	return control.Edit{Path: r.steps, Set: r.Body}.Loggable().(control.Edit).Set
}

// tagged is an answer about one object.
type tagged[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

func addObjects(api huma.API, s Source) {
	for i := range kinds {
		k := &kinds[i]
		writeObject(api, k, http.MethodPut, "Make "+k.what+", or all of what it is from now on", s, func(o control.Object) control.Edit { return control.Edit{Set: o} })
		writeObject(api, k, http.MethodPatch, "Change some keys of "+k.what+" by a merge patch (RFC 7396)", s, func(o control.Object) control.Edit { return control.Edit{Merge: o} })
		huma.Register(api, k.operation("delete", http.MethodDelete, k.one, "Remove "+k.what, k.steps),
			func(ctx context.Context, in *ObjectChange) (*tagged[control.Changed], error) {
				return changed(ctx, s, in.changes(control.Edit{Remove: true}))
			})
		if k.name == "volume" || k.name == "target" || k.name == "portal-group" {
			continue // which tell more
		}
		readObject(api, k, s, func(o control.ObjectResource) control.ObjectResource { return o })
		if k.list != "" {
			listObjects(api, k, s, func(all []control.ObjectResource) control.ObjectList { return control.ObjectList{Objects: all} })
		}
	}
	huma.Register(api, huma.Operation{OperationID: "post-changes", Method: http.MethodPost, Path: control.ChangesPath, Summary: "Change several objects, or none of them", MaxBodyBytes: maxChanges},
		func(ctx context.Context, in *struct{ Body control.Changes }) (*tagged[control.Changed], error) {
			noteInput(ctx, in)
			return changed(ctx, s, in.Body)
		})
}

func writeObject(api huma.API, k *kind, method, summary string, s Source, edit func(control.Object) control.Edit) {
	huma.Register(api, k.operation(strings.ToLower(method), method, k.one, summary, k.steps),
		func(ctx context.Context, in *writeRequest) (*tagged[control.Changed], error) {
			noteInput(ctx, in)
			return changed(ctx, s, in.changes(edit(in.Body)))
		})
}

// changed makes changes in the name of who asks.
func changed(ctx context.Context, s Source, c control.Changes) (*tagged[control.Changed], error) {
	out, err := s.Change(askerOf(ctx), c)
	if err != nil {
		return nil, refusal(err)
	}
	noteResult(ctx, out)
	return &tagged[control.Changed]{out.ETag, out}, nil
}

func readObject[T any](api huma.API, k *kind, s Source, told func(control.ObjectResource) T) {
	huma.Register(api, k.operation("get", http.MethodGet, k.one, "Show "+k.what, k.steps),
		func(_ context.Context, in *ObjectPath) (*tagged[T], error) {
			o, err := s.Object(in.steps)
			if err != nil {
				return nil, refusal(err)
			}
			return &tagged[T]{o.ETag, told(o)}, nil
		})
}

func listObjects[T any](api huma.API, k *kind, s Source, told func([]control.ObjectResource) T) {
	huma.Register(api, k.operation("list", http.MethodGet, k.list, "List all: "+k.what, k.steps[:len(k.steps)-1]),
		func(_ context.Context, in *ObjectPath) (*answer[T], error) {
			all, err := s.Objects(in.steps)
			if err != nil {
				return nil, refusal(err)
			}
			return &answer[T]{told(all)}, nil
		})
}

// kindOf is the kind of a name.
func kindOf(name string) *kind {
	return &kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// VolumeList is the answer of /v1/volumes.
type VolumeList struct {
	Volumes []control.VolumeResource `json:"volumes" nullable:"false" doc:"All volumes, in the order of the configuration."`
}

func addVolumes(api huma.API, s Source) {
	k := kindOf("volume")
	states := func() map[string]control.Volume {
		return byName(s.Status().Volumes, func(v control.Volume) string { return v.Name })
	}
	listObjects(api, k, s, func(all []control.ObjectResource) VolumeList {
		return VolumeList{withStates(all, states(), volumeResource)}
	})
	readObject(api, k, s, func(o control.ObjectResource) control.VolumeResource { return volumeResource(s.VolumeState(o.Name), o) })
}

// byName finds states by the name of what they are of.
func byName[S any](all []S, name func(S) string) map[string]S {
	states := make(map[string]S, len(all))
	for _, state := range all {
		states[name(state)] = state
	}
	return states
}

// withStates are objects with what is known of each; of one that is not there yet, nothing is.
func withStates[S, R any](all []control.ObjectResource, states map[string]S, resource func(S, control.ObjectResource) R) []R {
	out := []R{}
	for _, o := range all {
		out = append(out, resource(states[o.Name], o))
	}
	return out
}

func volumeResource(v control.Volume, o control.ObjectResource) control.VolumeResource {
	v.Name = o.Name
	return control.VolumeResource{Volume: v, ETag: o.ETag, Config: o.Config}
}

// TargetList is the answer of /v1/targets.
type TargetList struct {
	Targets []control.TargetResource `json:"targets" nullable:"false" doc:"All targets, by name."`
}

func addTargets(api huma.API, s Source) {
	k := kindOf("target")
	states := func() map[string]control.Target {
		return byName(s.Status().Targets, func(t control.Target) string { return t.Name })
	}
	listObjects(api, k, s, func(all []control.ObjectResource) TargetList {
		reach := s.TargetReach("")
		return TargetList{withStates(all, states(), func(t control.Target, o control.ObjectResource) control.TargetResource {
			return targetResource(t, o, reach[o.Name])
		})}
	})
	readObject(api, k, s, func(o control.ObjectResource) control.TargetResource {
		return targetResource(s.TargetState(o.Name), o, s.TargetReach(o.Name)[o.Name])
	})
}

func targetResource(t control.Target, o control.ObjectResource, reach []control.Reach) control.TargetResource {
	t.Name = o.Name
	if t.Portals == nil {
		t.Portals, t.Volumes = []string{}, []string{}
	}
	return control.TargetResource{Target: t, Reach: append([]control.Reach{}, reach...), ETag: o.ETag, Config: o.Config}
}

func addPortalGroups(api huma.API, s Source) {
	k := kindOf("portal-group")
	states := func() map[string]control.Reach {
		return byName(s.GroupReach(), func(r control.Reach) string { return r.Group })
	}
	listObjects(api, k, s, func(all []control.ObjectResource) control.PortalGroupList {
		return control.PortalGroupList{Objects: withStates(all, states(), portalGroupResource)}
	})
	readObject(api, k, s, func(o control.ObjectResource) control.PortalGroupResource {
		return portalGroupResource(states()[o.Name], o)
	})
}

func portalGroupResource(r control.Reach, o control.ObjectResource) control.PortalGroupResource {
	if r.Group = o.Name; r.States == nil {
		r.States, r.Draining = []string{}, []control.PortalDrain{}
	}
	return control.PortalGroupResource{ObjectResource: o, Reach: r}
}
