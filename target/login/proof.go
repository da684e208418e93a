package login

import "slices"

// Proof is who an initiator has proven to be by CHAP: a user of an auth group. The
// zero value proves nothing. It is what a decision about somebody else's session or
// data may rest on; an InitiatorName is a claim that anybody can make.
type Proof struct {
	Group string // Auth.Group of the credentials that were used
	User  string // CHAP name
}

// Proven reports whether there is a proof.
func (p Proof) Proven() bool { return p != Proof{} }

// Parts returns the group and the user.
func (p Proof) Parts() (group, user string) { return p.Group, p.User }

// String is the group and the user, for logs; empty without a proof.
func (p Proof) String() string {
	if !p.Proven() {
		return ""
	}
	return p.Group + "/" + p.User
}

// Accepts reports whether who has proven to be a user, or nothing, may come in. It is
// what a session must still show when the credentials have changed.
func (a *Auth) Accepts(p Proof) bool { return a.AllowNone || a.Has(p) }

// Has reports whether the proof is one of a user of the credentials.
func (a *Auth) Has(p Proof) bool {
	return p.Proven() && p.Group == a.Group && slices.ContainsFunc(a.Incoming, func(c Credential) bool { return c.User == p.User })
}
