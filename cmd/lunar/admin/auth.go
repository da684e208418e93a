package admin

import (
	"context"
	"errors"
	"fmt"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

type authGroupCommand struct {
	List   authGroupListCommand         `cmd:"" help:"List the auth-groups."`
	Show   showCommand[authGroupName]   `cmd:"" help:"Show one. Secrets are not shown."`
	Create authGroupCreateCommand       `cmd:"" help:"Make one that is not there yet, in the running server and the configuration file."`
	Set    authGroupSetCommand          `cmd:"" help:"Change some of its keys."`
	Delete deleteCommand[authGroupName] `cmd:"" help:"Remove it with its users. Whom that hits is told, and needs --yes."`
}

type userCommand struct {
	List   userListCommand         `cmd:"" help:"List the CHAP users of auth-groups."`
	Show   showCommand[userName]   `cmd:"" help:"Show one. The secret is not shown."`
	Create userCreateCommand       `cmd:"" help:"Make one that is not there yet, with a secret that is asked for at the terminal."`
	Set    userSetCommand          `cmd:"" help:"Change some keys or the secret. Sessions go on; the next login needs the new secret."`
	Delete deleteCommand[userName] `cmd:"" help:"Remove one. Whom that hits is told, and needs --yes."`
}

type authGroupListCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

var authGroupsListed = objectsListed(append(listing.Table[control.ObjectResource]{
	{Name: "auth-group", Of: func(o *control.ObjectResource) any { return o.Name }},
	{Name: "users", Of: func(o *control.ObjectResource) any { return namesOf(usersIn(o)) }},
	{Name: "mutual", Of: func(o *control.ObjectResource) any {
		mutual, _ := o.Config["mutual"].(map[string]any)
		return mutual["user"]
	}},
	{Name: "initiators", Of: func(o *control.ObjectResource) any { return keyOf(o, "initiators") }},
	{Name: "networks", Of: func(o *control.ObjectResource) any { return keyOf(o, "networks") }},
}, configured[control.ObjectResource]("algorithms")...))

// Run lists auth groups.
func (k authGroupListCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.AuthGroupsPath, authGroupsListed)
	})
}

// userRow is a CHAP user of an auth group.
type userRow struct {
	Group      string   `json:"group"`
	User       string   `json:"user"`
	Initiators []string `json:"initiators"`            // names that are his alone
	SecretFile string   `json:"secret-file,omitempty"` // empty: the configuration has the secret
}

type userList struct {
	Users []userRow `json:"users"`
}

// usersIn are the users of an auth group.
func usersIn(group *control.ObjectResource) (rows []userRow) {
	users, _ := group.Config["chap"].([]any)
	for _, u := range users {
		user, _ := u.(map[string]any)
		row := userRow{Group: group.Name, User: fmt.Sprint(user["user"]), Initiators: append([]string{}, words(user["initiators"])...)}
		row.SecretFile, _ = user["secret-file"].(string)
		rows = append(rows, row)
	}
	return rows
}

func namesOf(users []userRow) (names []string) {
	for i := range users {
		names = append(names, users[i].User)
	}
	return names
}

var usersListed = rowsOf[userList, userRow]{
	rows:     func(l *userList) []userRow { return l.Users },
	document: func(_ *userList, rows []userRow) any { return userList{rows} },
	table: listing.Table[userRow]{
		{Name: "auth-group", Of: func(u *userRow) any { return u.Group }},
		{Name: "user", Of: func(u *userRow) any { return u.User }},
		{Name: "initiators", Of: func(u *userRow) any { return u.Initiators }},
		{Name: "secret", Of: func(u *userRow) any {
			if u.SecretFile == "" {
				return "in the configuration"
			}
			return "in a file"
		}},
		{Name: "secret-file", Of: func(u *userRow) any { return u.SecretFile }, Wide: true},
	},
}

type userListCommand struct {
	asking    `embed:""`
	selection `embed:""`
	Group     string `arg:"" optional:"" help:"Name of an auth-group; without it: of all."`
}

// Run lists users.
func (k userListCommand) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		groups, err := api.Objects(ctx, control.AuthGroupsPath)
		if err != nil {
			return err
		}
		out, found := userList{Users: []userRow{}}, false
		for i := range groups {
			if k.Group == "" || k.Group == groups[i].Name {
				out.Users, found = append(out.Users, usersIn(&groups[i])...), true
			}
		}
		if k.Group != "" && !found {
			return fmt.Errorf("found no auth-group %q", k.Group)
		}
		return usersListed.print(c.Out, form, &out, k.options())
	})
}

// mutualSecret is the secret by which the target proves itself.
type mutualSecret struct {
	MutualSecretFrom string `placeholder:"FILE" help:"Read the secret of mutual from this file, - is standard input; mutual.user=NAME is the name."`
}

// with puts it into a group, if there is one.
func (k *mutualSecret) with(group control.Object, err error) (control.Object, error) {
	if err != nil || k.MutualSecretFrom == "" {
		return group, err
	}
	secret, err := secretFrom(k.MutualSecretFrom)
	if err != nil {
		return nil, err
	}
	if err := put(group, []string{"mutual", "secret"}, secret); err != nil {
		return nil, usage(err)
	}
	return group, nil
}

type authGroupCreateCommand struct {
	createCommand[authGroupName] `embed:""`
	mutualSecret                 `embed:""`
}

// Run makes an auth group.
func (k authGroupCreateCommand) Run(ctx context.Context, c cli.Console) error {
	group, err := k.with(k.object())
	if err != nil {
		return err
	}
	return k.create(ctx, c, group)
}

type authGroupSetCommand struct {
	setCommand[authGroupName] `embed:""`
	mutualSecret              `embed:""`
}

// Run changes an auth group.
func (k authGroupSetCommand) Run(ctx context.Context, c cli.Console) error {
	group, err := k.with(k.object())
	if err != nil {
		return err
	}
	return k.set(ctx, c, group)
}

// userSecret is where the secret of a user comes from. It stands on no command line.
type userSecret struct {
	SecretFrom string `placeholder:"FILE" help:"Read the secret from this file, - is standard input. The server gets the secret; of secret-file=PATH it reads the file itself, at each start."`
}

type userCreateCommand struct {
	createCommand[userName] `embed:""`
	userSecret              `embed:""`
}

// Run makes a user.
func (k userCreateCommand) Run(ctx context.Context, c cli.Console) error {
	user, err := k.object()
	if err != nil {
		return err
	}
	secret := ""
	switch {
	case k.SecretFrom != "":
		secret, err = secretFrom(k.SecretFrom)
	case user["secret"] == nil && user["secret-file"] == nil:
		secret, err = askedSecret(ctx, c, k.Place.User)
	}
	if err != nil {
		return err
	}
	if secret != "" {
		user["secret"] = secret
	}
	return k.create(ctx, c, user)
}

type userSetCommand struct {
	setCommand[userName] `embed:""`
	userSecret           `embed:""`
	AskSecret            bool `help:"Ask for a new secret at the terminal."`
}

// Run changes a user.
func (k userSetCommand) Run(ctx context.Context, c cli.Console) error {
	user, err := k.object()
	if err != nil {
		return err
	}
	secret := ""
	switch {
	case k.AskSecret && k.SecretFrom != "":
		return usage(errors.New("found --ask-secret and --secret-from, expected one of them"))
	case k.SecretFrom != "":
		secret, err = secretFrom(k.SecretFrom)
	case k.AskSecret:
		secret, err = askedSecret(ctx, c, k.Place.User)
	case user["secret-file"] != nil && user["secret"] == nil:
		user["secret"] = nil // which he has no more
	}
	if err != nil {
		return err
	}
	if secret != "" {
		user = withSecret(user, secret)
	}
	return k.set(ctx, c, user)
}
