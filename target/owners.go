package target

import (
	"slices"
	"strings"

	"lunar/scheduler"
	"lunar/target/login"
	"lunar/target/pdu"
)

// Owner is a user whose some initiator names are: nobody else may log in with them, and
// the user with no others.
type Owner struct {
	login.Proof
	Names []string // iSCSI names or globs (* ? [...])
}

// Owners say whose initiator names are, in all of a server. A nil one has none. It does
// not change.
type Owners struct {
	exact map[string][]login.Proof
	globs []Owner
	all   map[login.Proof]bool
}

// NewOwners makes Owners of users with names.
func NewOwners(all []Owner) *Owners {
	o := &Owners{exact: map[string][]login.Proof{}, all: map[login.Proof]bool{}}
	for _, owner := range all {
		o.all[owner.Proof] = true
		globs := Owner{Proof: owner.Proof}
		for _, name := range owner.Names {
			name = strings.ToLower(name)
			if strings.ContainsAny(name, `*?[\`) {
				globs.Names = append(globs.Names, name)
			} else {
				o.exact[name] = append(o.exact[name], owner.Proof)
			}
		}
		if len(globs.Names) > 0 {
			o.globs = append(o.globs, globs)
		}
	}
	return o
}

// of returns the users whose a name is; none: it is free.
func (o *Owners) of(name string) []login.Proof {
	if o == nil {
		return nil
	}
	owners := slices.Clip(o.exact[name])
	for i := range o.globs {
		if matchesName(o.globs[i].Names, name) {
			owners = append(owners, o.globs[i].Proof)
		}
	}
	return owners
}

// own reports whether the initiator has a name that is its own: the one name that is worth
// as much as the proof.
func (o *Owners) own(i Initiator) bool { return slices.Contains(o.of(i.Name), i.Proof) }

// refusal tells why an initiator may not have its name in a normal session, or is nil.
func (o *Owners) refusal(i Initiator) *login.Error {
	owners := o.of(i.Name)
	switch {
	case len(owners) == 0 || slices.Contains(owners, i.Proof):
		return o.refusalOfOthers(i)
	case !i.Proof.Proven():
		return login.Errorf(pdu.LoginAuthenticationFailure, "the initiator name belongs to user %q, who has to prove it", owners[0])
	}
	return login.Errorf(pdu.LoginAuthorizationFailure, "the initiator name belongs to user %q, not to %q", owners[0], i.Proof)
}

// refusalOfOthers tells why a user who has names may not have another, or is nil. It is
// all that discovery asks: with other's names the initiator finds what it may not use.
func (o *Owners) refusalOfOthers(i Initiator) *login.Error {
	if o == nil || !o.all[i.Proof] || o.own(i) {
		return nil
	}
	return login.Errorf(pdu.LoginAuthorizationFailure, "the initiator name is none of the initiators of user %q", i.Proof)
}

// flowOf is an initiator's use of a LUN: what a user takes under a name that is not his own is not
// taken from others who claim it.
func flowOf(i *Initiator, owners *Owners, target string, lun uint64) scheduler.Flow {
	f := scheduler.Flow{Initiator: i.Name, Target: target, LUN: lun}
	if !owners.own(*i) {
		f.User = i.Proof.String()
	}
	return f
}
