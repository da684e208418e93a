package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

type initiatorCommand struct {
	List initiatorListCommand `cmd:"" help:"List who has sessions, and whom targets admit: by access rules, auth-groups and the names of CHAP users."`
}

type initiatorListCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

// initiatorRow is an initiator with a session, or those whom a target admits.
type initiatorRow struct {
	Initiator string   `json:"initiator"` // a name; of those who are admitted, names and globs
	Target    string   `json:"target"`
	Is        string   `json:"is"` // connected, or admitted
	Session   int      `json:"session,omitempty"`
	From      string   `json:"from,omitempty"`
	By        string   `json:"by"`
	Users     []string `json:"users"`
}

type initiatorList struct {
	Initiators []initiatorRow `json:"initiators"`
}

var initiatorsListed = rowsOf[initiatorList, initiatorRow]{
	rows:     func(l *initiatorList) []initiatorRow { return l.Initiators },
	document: func(_ *initiatorList, rows []initiatorRow) any { return initiatorList{rows} },
	table: listing.Table[initiatorRow]{
		{Name: "initiator", Of: func(r *initiatorRow) any { return r.Initiator }},
		{Name: "is", Of: func(r *initiatorRow) any { return r.Is }},
		{Name: "target", Of: func(r *initiatorRow) any { return r.Target }},
		{Name: "from", Of: func(r *initiatorRow) any { return r.From }},
		{Name: "users", Of: func(r *initiatorRow) any { return r.Users }},
		{Name: "by", Of: func(r *initiatorRow) any { return r.By }},
		{Name: "session", Of: func(r *initiatorRow) any {
			if r.Session == 0 {
				return nil
			}
			return r.Session
		}, Wide: true},
	},
}

// Run lists initiators.
func (k initiatorListCommand) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		status, err := api.Status(ctx)
		if err != nil {
			return err
		}
		var targets targetList
		if err := api.Get(ctx, control.TargetsPath, &targets); err != nil {
			return err
		}
		groups, err := api.Objects(ctx, control.AuthGroupsPath)
		if err != nil {
			return err
		}
		out := initiatorList{Initiators: append(connected(status.Sessions), admitted(targets.Targets, groups)...)}
		return initiatorsListed.print(c.Out, form, &out, k.options())
	})
}

func connected(sessions []control.Session) []initiatorRow {
	rows := []initiatorRow{}
	for i := range sessions {
		n := &sessions[i]
		row := initiatorRow{Initiator: n.Initiator, Target: n.Target, Is: "connected", Session: n.TSIH, From: n.Address, By: fmt.Sprintf("session %d", n.TSIH), Users: []string{}}
		if n.User != "" {
			row.Users = append(row.Users, n.User)
		}
		if n.Target == "" {
			row.Target = "(discovery)"
		}
		rows = append(rows, row)
	}
	return rows
}

// admitted are whom targets admit, a row for each access rule and each name of a CHAP user.
func admitted(targets []control.TargetResource, groups []control.ObjectResource) (rows []initiatorRow) {
	for i := range targets {
		t := &targets[i]
		rules, _ := t.Config["access"].([]any)
		if rules == nil {
			rows = append(rows, admittedBy(t.Name, "target", t.Config["auth-group"], nil, groups))
		}
		for j, r := range rules {
			rule, _ := r.(map[string]any)
			group, own := rule["auth-group"]
			if !own {
				group = t.Config["auth-group"]
			}
			rows = append(rows, admittedBy(t.Name, fmt.Sprintf("access rule %d", j+1), group, rule, groups))
		}
	}
	return rows
}

// admittedBy is whom a rule admits, with what its auth-group adds.
func admittedBy(target, by string, group any, rule control.Object, groups []control.ObjectResource) initiatorRow {
	row := initiatorRow{Target: target, Is: "admitted", By: by, Users: []string{}}
	names, networks := words(rule["initiators"]), words(rule["networks"])
	if i := slices.IndexFunc(groups, func(g control.ObjectResource) bool { return g.Name == group }); i >= 0 {
		g := groups[i].Config
		names, networks, row.By = append(names, words(g["initiators"])...), append(networks, words(g["networks"])...), by+", auth-group "+groups[i].Name
		row.Users = usersOf(groups[i].Name, g["chap"])
	}
	if row.Initiator = strings.Join(names, ", "); row.Initiator == "" {
		row.Initiator = "(any)"
	}
	row.From = strings.Join(networks, ", ")
	return row
}

// usersOf are the CHAP users of a group with the names that are theirs alone.
func usersOf(group string, chap any) []string {
	out := []string{}
	users, _ := chap.([]any)
	for _, u := range users {
		user, _ := u.(map[string]any)
		text := fmt.Sprintf("%s/%v", group, user["user"])
		if own := words(user["initiators"]); own != nil {
			text += " (" + strings.Join(own, ", ") + ")"
		}
		out = append(out, text)
	}
	return out
}

// words are a value, or those of a list.
func words(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			out = append(out, fmt.Sprint(one))
		}
	}
	return out
}
