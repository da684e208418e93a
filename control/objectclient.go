package control

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// Where is the address of an object of the configuration: VolumeAt("disk").
type Where string

// VolumeAt is where a volume is.
func VolumeAt(name string) Where { return whereOf(VolumePath, name) }

// TargetAt is where a target is.
func TargetAt(name string) Where { return whereOf(TargetPath, name) }

// LUNAt is where a LUN of a target is.
func LUNAt(target, lun string) Where { return whereOf(LUNPath, target, lun) }

// LUNsAt is where the LUNs of a target are.
func LUNsAt(target string) Where { return whereOf(LUNsPath, target) }

// AuthGroupAt is where an auth group is.
func AuthGroupAt(name string) Where { return whereOf(AuthGroupPath, name) }

// UserAt is where a user of an auth group is.
func UserAt(group, user string) Where { return whereOf(UserPath, group, user) }

// PortalGroupAt is where a portal group is.
func PortalGroupAt(name string) Where { return whereOf(PortalGroupPath, name) }

// RuleGroupAt is where a group of initiators is that rules of the QoS are about.
func RuleGroupAt(name string) Where { return whereOf(RuleGroupPath, name) }

// SettingsAt is where the settings of a section are, such as server.
func SettingsAt(section string) Where { return whereOf(SettingsPath, section) }

// whereOf puts values into the places of a path that parameters in braces hold.
func whereOf(path string, values ...string) Where {
	for _, v := range values {
		before, rest, _ := strings.Cut(path, "{")
		_, rest, _ = strings.Cut(rest, "}")
		path = before + strings.ReplaceAll(url.PathEscape(v), "{", "%7B") + rest
	}
	return Where(path)
}

// Condition is what must be so for an object to be changed. The zero value is nothing.
type Condition struct {
	Match string // the ETag that it has; *: there is one
	New   bool   // there is none
}

// Volume asks for a volume.
func (c *Client) Volume(ctx context.Context, name string) (VolumeResource, error) {
	var v VolumeResource
	err := c.Get(ctx, string(VolumeAt(name)), &v)
	return v, err
}

// Target asks for a target.
func (c *Client) Target(ctx context.Context, name string) (TargetResource, error) {
	var t TargetResource
	err := c.Get(ctx, string(TargetAt(name)), &t)
	return t, err
}

// Object asks for an object of any kind.
func (c *Client) Object(ctx context.Context, at Where) (ObjectResource, error) {
	var o ObjectResource
	err := c.Get(ctx, string(at), &o)
	return o, err
}

// Objects asks for all objects at a path such as AuthGroupsPath.
func (c *Client) Objects(ctx context.Context, path Where) ([]ObjectResource, error) {
	var list ObjectList
	err := c.Get(ctx, string(path), &list)
	return list.Objects, err
}

// ObjectList is the answer of the paths that list objects.
type ObjectList struct {
	Objects []ObjectResource `json:"objects" nullable:"false" doc:"All of them, by name."`
}

// Put makes an object, or what it is from now on.
func (c *Client) Put(ctx context.Context, at Where, o Object, p Permissions, only Condition) (Changed, error) {
	return c.change(ctx, http.MethodPut, at, o, p, only)
}

// Patch changes some keys of an object (RFC 7396): nil removes one.
func (c *Client) Patch(ctx context.Context, at Where, o Object, p Permissions, only Condition) (Changed, error) {
	return c.change(ctx, http.MethodPatch, at, o, p, only)
}

// Delete removes an object.
func (c *Client) Delete(ctx context.Context, at Where, p Permissions, only Condition) (Changed, error) {
	return c.change(ctx, http.MethodDelete, at, nil, p, only)
}

// Change makes several changes, or none of them.
func (c *Client) Change(ctx context.Context, all Changes) (Changed, error) {
	var out Changed
	err := c.send(ctx, http.MethodPost, ChangesPath, all, &out)
	return out, err
}

func (c *Client) change(ctx context.Context, method string, at Where, o Object, p Permissions, only Condition) (Changed, error) {
	q := url.Values{}
	if p.DryRun {
		q.Set("dry-run", "true")
	}
	if p.Yes {
		q.Set("yes", "true")
	}
	for _, v := range p.AllowShrink {
		q.Add("allow-shrink", v)
	}
	if p.Keep != "" {
		q.Set("keep", p.Keep)
	}
	header := http.Header{}
	if only.Match != "" {
		header.Set("If-Match", only.Match)
	}
	if only.New {
		header.Set("If-None-Match", "*")
	}
	path := string(at)
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	var body any
	if method != http.MethodDelete {
		if o == nil {
			o = Object{}
		}
		body = o
	}
	var out Changed
	err := c.sendWith(ctx, method, path, header, body, &out)
	return out, err
}
