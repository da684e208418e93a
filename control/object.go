package control

import (
	"fmt"
	"maps"
	"strings"
)

// Object is a part of the configuration: the keys and values that a configuration file
// has there. Secrets are never told (see Withheld).
type Object map[string]any

// Withheld stands for a secret where Objects are told. In what is sent it stands for the
// secret that there is.
const Withheld = "*** not shown ***"

// The paths of the objects of the configuration.
const (
	VolumesPath      = "/v1/volumes"
	VolumePath       = "/v1/volumes/{name}"
	TargetsPath      = "/v1/targets"
	TargetPath       = "/v1/targets/{name}"
	LUNsPath         = "/v1/targets/{name}/luns"
	LUNPath          = "/v1/targets/{name}/luns/{lun}"
	AuthGroupsPath   = "/v1/auth-groups"
	AuthGroupPath    = "/v1/auth-groups/{name}"
	UsersPath        = "/v1/auth-groups/{name}/users"
	UserPath         = "/v1/auth-groups/{name}/users/{user}"
	PortalGroupsPath = "/v1/portal-groups"
	PortalGroupPath  = "/v1/portal-groups/{name}"
	RuleGroupsPath   = "/v1/qos/groups"
	RuleGroupPath    = "/v1/qos/groups/{name}"
	SettingsPath     = "/v1/settings/{section}"
	ChangesPath      = "/v1/changes"
)

// VolumeResource is a volume with its part of the configuration.
type VolumeResource struct {
	Volume
	ETag   string `json:"etag" doc:"Changes when config does; If-Match takes it."`
	Config Object `json:"config" nullable:"false" doc:"Keys and values as in a configuration file."`
}

// TargetResource is a target with its part of the configuration.
type TargetResource struct {
	Target
	Reach  []Reach `json:"reach" nullable:"false" doc:"How its volumes are reached now, through each of its portal groups."`
	ETag   string  `json:"etag" doc:"Changes when config does; If-Match takes it."`
	Config Object  `json:"config" nullable:"false" doc:"Keys and values as in a configuration file."`
}

// ObjectResource is any other part of the configuration: a LUN, an auth group, a user, a
// portal group, a group of the QoS, or a section.
type ObjectResource struct {
	Name   string `json:"name" doc:"Name, LUN or section."`
	ETag   string `json:"etag" doc:"Changes when config does; If-Match takes it."`
	Config Object `json:"config" nullable:"false" doc:"Keys and values as in a configuration file. Secrets are not shown."`
}

// Edit changes one object of the configuration. One of Set, Merge and Remove is given.
type Edit struct {
	Path        []string `json:"path" nullable:"false" minItems:"1" maxItems:"4" doc:"Its place in a configuration file: volumes and a name; targets, a name, luns and a number; auth-groups, a name, chap and a user; qos, rules and a name; server."`
	Set         Object   `json:"set,omitzero" doc:"What it is from now on, whether there was one or not."`
	Merge       Object   `json:"merge,omitzero" doc:"A merge patch (RFC 7396) of what it is."`
	Remove      bool     `json:"remove,omitempty" doc:"It is removed."`
	IfMatch     string   `json:"ifMatch,omitempty" doc:"ETag that it must have; *: there must be one."`
	IfNoneMatch string   `json:"ifNoneMatch,omitempty" enum:"*" doc:"*: there must be none."`
}

// Changes are Edits of which all are made, or none.
type Changes struct {
	Edits []Edit `json:"edits" nullable:"false" minItems:"1" maxItems:"10000" doc:"One after the other."`
	Permissions
}

// Permissions are how a change is to be made, and what it may do.
type Permissions struct {
	DryRun      bool     `json:"dryRun,omitempty" doc:"Show the changes without making them."`
	Yes         bool     `json:"yes,omitempty" doc:"Allow changes that end sessions or leave data behind."`
	AllowShrink []string `json:"allowShrink,omitempty" nullable:"false" maxItems:"10000" doc:"Names of volumes that may shrink, and lose the data behind their new end."`
	Keep        string   `json:"keep,omitempty" enum:"file,running" doc:"file, the default: the change is written to the configuration file as well; running: it lasts until the next start."`
}

// The values of Permissions.Keep.
const (
	KeepFile    = "file"
	KeepRunning = "running"
)

// Changed is what has come of Changes.
type Changed struct {
	Applied
	Generation int    `json:"generation,omitempty" doc:"Number of the configuration file's new state; absent: it was not written."`
	ETag       string `json:"etag,omitempty" doc:"Of the object, if there is one and it was the only one to change."`
}

// Outcome is for the log.
func (c Changed) Outcome() string {
	if c.Generation == 0 {
		return c.Applied.Outcome()
	}
	return strings.TrimPrefix(fmt.Sprintf("%s; generation %d", c.Applied.Outcome(), c.Generation), "; ")
}

// Loggable is an Edit as a log may have it: values of keys that have secrets, or lead to
// them, are left out.
func (e Edit) Loggable() any {
	if len(e.Path) > 0 {
		e.Set, e.Merge = e.Set.loggable(e.Path[0]), e.Merge.loggable(e.Path[0])
	}
	return e
}

// Loggable are Changes as a log may have them.
func (c Changes) Loggable() any {
	edits := make([]Edit, len(c.Edits))
	for i, e := range c.Edits {
		edits[i] = e.Loggable().(Edit)
	}
	c.Edits = edits
	return c
}

// secretive are the sections in which any value may be a secret that stands at the wrong
// key.
var secretive = map[string]bool{"auth-groups": true, "discovery": true}

// loggable has the keys of an Object of a section, and those values that are no secrets.
func (o Object) loggable(section string) Object {
	if o == nil {
		return nil
	}
	out := Object{}
	if !secretive[section] {
		maps.Copy(out, WithoutSecrets(map[string]any(o)).(map[string]any))
		return out
	}
	for key := range o {
		out[key] = Withheld
	}
	return out
}

// WithoutSecrets is what may be told of a value of JSON: Withheld is in place of each that
// is at the key secret, however deep.
func WithoutSecrets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			if out[key] = WithoutSecrets(value); key == "secret" {
				out[key] = Withheld
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, value := range v {
			out = append(out, WithoutSecrets(value))
		}
		return out
	}
	return v
}
