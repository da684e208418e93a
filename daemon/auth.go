package daemon

import (
	"lunar/conf"
	"lunar/target"
	"lunar/target/login"
)

// algorithms maps the configuration's names to CHAP algorithms.
var algorithms = map[string]login.Algorithm{
	"md5": login.MD5, "sha1": login.SHA1, "sha256": login.SHA256, "sha3-256": login.SHA3256,
}

// authOf translates an auth-group; nil asks for no authentication.
func authOf(g *conf.AuthGroup, alias string) login.Auth {
	if g == nil {
		return login.Auth{AllowNone: true, TargetAlias: alias}
	}
	a := login.Auth{Group: g.Name, AllowNone: len(g.CHAP) == 0, TargetAlias: alias}
	for _, c := range g.CHAP {
		a.Incoming = append(a.Incoming, credential(c))
	}
	if g.Mutual != nil {
		mutual := credential(*g.Mutual)
		a.Mutual = &mutual
	}
	for _, name := range g.Algorithms {
		a.Algorithms = append(a.Algorithms, algorithms[name])
	}
	return a
}

// nameOwnersOf are the users of all auth groups who have initiator names.
func nameOwnersOf(cfg *conf.Config) *target.Owners {
	var all []target.Owner
	for i := range cfg.AuthGroups {
		g := &cfg.AuthGroups[i]
		for _, c := range g.CHAP {
			if len(c.Initiators) > 0 {
				all = append(all, target.Owner{Proof: login.Proof{Group: g.Name, User: c.User}, Names: c.Initiators})
			}
		}
	}
	return target.NewOwners(all)
}

func credential(c conf.Credential) login.Credential {
	return login.Credential{User: c.User, Secret: login.NewSecret(c.Secret.Reveal())}
}
