package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

// objectCommand has what can be done with each object of a kind.
type objectCommand[P named] struct {
	Show   showCommand[P]   `cmd:"" help:"Show one, its configuration and state."`
	Create createCommand[P] `cmd:"" help:"Make one that is not there yet, in the running server and the configuration file."`
	Set    setCommand[P]    `cmd:"" help:"Change some of its keys."`
	Delete deleteCommand[P] `cmd:"" help:"Remove it. What that destroys and whom it hits is told, and needs --yes."`
}

type volumeCommand struct {
	List                      volumeListCommand `cmd:"" help:"List the volumes with their health and traffic."`
	objectCommand[volumeName] `embed:""`
	Snapshot                  snapshotCommand `cmd:"" help:"Make, list, clone, roll back to and delete snapshots of a volume."`
	freezing                  `embed:""`
	moving                    `embed:""`
}

type targetCommand struct {
	List                      targetListCommand `cmd:"" help:"List the targets."`
	objectCommand[targetName] `embed:""`
}

type lunCommand struct {
	List                   lunListCommand `cmd:"" help:"List the LUNs of targets."`
	objectCommand[lunName] `embed:""`
}

type portalCommand struct {
	List                      portalListCommand `cmd:"" help:"List the portal groups."`
	objectCommand[portalName] `embed:""`
}

type sessionCommand struct {
	List   sessionsCommand      `cmd:"" help:"List the sessions (as lunar sessions)."`
	Show   sessionShowCommand   `cmd:"" help:"Show one with its LUNs and connections."`
	Delete sessionDeleteCommand `cmd:"" help:"Ask its initiator to log out, and disconnect it if it stays."`
}

type volumeListCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

type volumeList struct {
	Volumes []control.VolumeResource `json:"volumes"`
}

var volumesListed = rowsOf[volumeList, control.VolumeResource]{
	rows:     func(l *volumeList) []control.VolumeResource { return l.Volumes },
	document: func(_ *volumeList, rows []control.VolumeResource) any { return volumeList{rows} },
	table:    append(ofResources(volumeTable), configured[control.VolumeResource]("path", "block-size", "serial", "naa", "cache")...),
}

// Run lists volumes.
func (k volumeListCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.VolumesPath, volumesListed)
	})
}

// ofResources are the columns of volumes for resources.
func ofResources(t listing.Table[control.Volume]) (out listing.Table[control.VolumeResource]) {
	for _, c := range t {
		out = append(out, listing.Column[control.VolumeResource]{Name: c.Name, Wide: c.Wide, Of: func(v *control.VolumeResource) any { return c.Of(&v.Volume) }})
	}
	return out
}

// configured are wide columns of keys of the configuration.
func configured[R any](keys ...string) (out listing.Table[R]) {
	for _, key := range keys {
		out = append(out, listing.Column[R]{Name: key, Wide: true, Of: func(r *R) any { return keyOf(any(r), key) }})
	}
	return out
}

// keyOf is the value of a key of an object, as a line.
func keyOf(resource any, key string) any {
	var o control.Object
	switch r := resource.(type) {
	case *control.VolumeResource:
		o = r.Config
	case *control.TargetResource:
		o = r.Config
	case *control.ObjectResource:
		o = r.Config
	case *control.PortalGroupResource:
		o = r.Config
	}
	switch v := o[key].(type) {
	case nil:
		return nil
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, fmt.Sprint(one))
		}
		return all
	case map[string]any:
		raw, _ := json.Marshal(v) // it came from JSON
		return string(raw)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return v
	}
}

type targetListCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

type targetList struct {
	Targets []control.TargetResource `json:"targets"`
}

var targetsListed = rowsOf[targetList, control.TargetResource]{
	rows:     func(l *targetList) []control.TargetResource { return l.Targets },
	document: func(_ *targetList, rows []control.TargetResource) any { return targetList{rows} },
	table: append(listing.Table[control.TargetResource]{
		{Name: "target", Of: func(t *control.TargetResource) any { return t.Name }},
		{Name: "sessions", Of: func(t *control.TargetResource) any { return t.Sessions }},
		{Name: "auth-group", Of: func(t *control.TargetResource) any { return keyOf(t, "auth-group") }},
		{Name: "volumes", Of: func(t *control.TargetResource) any { return t.Volumes }},
		{Name: "portals", Of: func(t *control.TargetResource) any { return t.Portals }},
		{Name: "alias", Of: func(t *control.TargetResource) any { return t.Alias }, Wide: true},
	}, configured[control.TargetResource]("portal-groups", "redirect", "moved")...),
}

// Run lists targets.
func (k targetListCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.TargetsPath, targetsListed)
	})
}

type lunListCommand struct {
	asking    `embed:""`
	selection `embed:""`
	Target    string `arg:"" optional:"" help:"iSCSI name of the target; without it: of all."`
}

// lunRow is a LUN that a target shows to whom no access rule shows others.
type lunRow struct {
	Target   string `json:"target"`
	LUN      int    `json:"lun"`
	Volume   string `json:"volume"`
	ReadOnly bool   `json:"readOnly"`
	Sessions int    `json:"sessions"`
}

type lunList struct {
	LUNs []lunRow `json:"luns"`
}

var lunsListed = rowsOf[lunList, lunRow]{
	rows:     func(l *lunList) []lunRow { return l.LUNs },
	document: func(_ *lunList, rows []lunRow) any { return lunList{rows} },
	table: listing.Table[lunRow]{
		{Name: "target", Of: func(l *lunRow) any { return l.Target }},
		{Name: "lun", Of: func(l *lunRow) any { return l.LUN }},
		{Name: "volume", Of: func(l *lunRow) any { return l.Volume }},
		{Name: "rights", Of: func(l *lunRow) any { return rights(l.ReadOnly) }},
		{Name: "sessions", Of: func(l *lunRow) any { return l.Sessions }},
	},
}

// Run lists LUNs.
func (k lunListCommand) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		status, err := api.Status(ctx)
		if err != nil {
			return err
		}
		out := lunList{LUNs: []lunRow{}}
		for i := range status.Targets {
			name := status.Targets[i].Name
			if k.Target != "" && !strings.EqualFold(k.Target, name) {
				continue
			}
			luns, err := api.Objects(ctx, control.LUNsAt(name))
			if err != nil {
				return err
			}
			for _, l := range luns {
				out.LUNs = append(out.LUNs, lunRowOf(name, l, &status))
			}
		}
		if k.Target != "" && !slices.ContainsFunc(status.Targets, func(t control.Target) bool { return strings.EqualFold(t.Name, k.Target) }) {
			return fmt.Errorf("found no target %q", k.Target)
		}
		slices.SortStableFunc(out.LUNs, func(a, b lunRow) int {
			if a.Target != b.Target {
				return strings.Compare(a.Target, b.Target)
			}
			return a.LUN - b.LUN
		})
		return lunsListed.print(c.Out, form, &out, k.options())
	})
}

func lunRowOf(target string, o control.ObjectResource, s *control.Status) lunRow {
	row := lunRow{Target: target}
	row.LUN, _ = strconv.Atoi(o.Name) // the name of a LUN is its number
	row.Volume, _ = o.Config["volume"].(string)
	row.ReadOnly, _ = o.Config["read-only"].(bool)
	for i := range s.Sessions {
		n := &s.Sessions[i]
		if n.Target == target && slices.ContainsFunc(n.LUNs, func(l control.SessionLUN) bool { return l.LUN == row.LUN && l.Volume == row.Volume }) {
			row.Sessions++
		}
	}
	return row
}

type portalListCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

var portalsListed = rowsOf[control.PortalGroupList, control.PortalGroupResource]{
	rows: func(l *control.PortalGroupList) []control.PortalGroupResource { return l.Objects },
	document: func(_ *control.PortalGroupList, rows []control.PortalGroupResource) any {
		return control.PortalGroupList{Objects: rows}
	},
	table: append(listing.Table[control.PortalGroupResource]{
		{Name: "group", Of: func(g *control.PortalGroupResource) any { return g.Name }},
		{Name: "listen", Of: func(g *control.PortalGroupResource) any { return keyOf(g, "listen") }},
		{Name: "listen-iser", Of: func(g *control.PortalGroupResource) any { return keyOf(g, "listen-iser") }},
		{Name: "tag", Of: func(g *control.PortalGroupResource) any { return keyOf(g, "tag") }},
		{Name: "state", Of: func(g *control.PortalGroupResource) any { return g.Reach.States }},
		{Name: "drained", Of: func(g *control.PortalGroupResource) any {
			var all []string
			for _, d := range g.Reach.Draining {
				all = append(all, d.String())
			}
			return all
		}},
		{Name: "redirect", Of: func(g *control.PortalGroupResource) any { return keyOf(g, "redirect") }},
	}, configured[control.PortalGroupResource]("alua")...),
}

// Run lists portal groups.
func (k portalListCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.PortalGroupsPath, portalsListed)
	})
}

type sessionShowCommand struct {
	asking `embed:""`
	output `embed:""`
	Number int `arg:"" help:"Its number (lunar session list)."`
}

// Run shows a session, for people as YAML.
func (k sessionShowCommand) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		status, err := api.Status(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(status.Sessions, func(n control.Session) bool { return n.TSIH == k.Number })
		if i < 0 {
			return fmt.Errorf("found no session %d (lunar session list)", k.Number)
		}
		raw, err := json.Marshal(status.Sessions[i])
		if err != nil {
			return err
		}
		if form == asTable {
			form = asYAML
		}
		return document(c.Out, form, append(raw, '\n'))
	})
}

type sessionDeleteCommand struct {
	asking `embed:""`
	Number int `arg:"" help:"Its number (lunar session list)."`
}

// Run ends a session.
func (k sessionDeleteCommand) Run(ctx context.Context, c cli.Console) error {
	return kickCommand{asking: k.asking, Who: strconv.Itoa(k.Number)}.Run(ctx, c)
}
