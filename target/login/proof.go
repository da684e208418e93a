package login

// Proof is who an initiator has proven to be by CHAP: a user of an auth group. The
// zero value proves nothing. It is what a decision about somebody else's session or
// data may rest on; an InitiatorName is a claim that anybody can make.
type Proof struct {
	Group string // Auth.Group of the credentials that were used
	User  string // CHAP name
}

// Proven reports whether there is a proof.
func (p Proof) Proven() bool { return p != Proof{} }

// String is the group and the user, for logs; empty without a proof.
func (p Proof) String() string {
	if !p.Proven() {
		return ""
	}
	return p.Group + "/" + p.User
}
