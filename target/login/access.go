package login

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"log/slog"

	"lunar/target/pdu"
)

// Access decides who may log in to what. The caller makes one for each
// connection when the answer depends on the peer's address.
type Access interface {
	// Lookup says how the initiator must authenticate for what it asks, or
	// why it may not have it: pdu.LoginNotFound, pdu.LoginAuthorizationFailure,
	// a redirection and so on. It is called once in a login, when the first
	// request is complete, and must not block.
	Lookup(q Query) (Auth, *Error)
}

// Query is what an initiator asks for in its first request.
type Query struct {
	InitiatorName string
	TargetName    string // empty in a discovery session that names none
	Discovery     bool
}

// Auth is how an initiator must authenticate.
type Auth struct {
	// AllowNone lets the initiator in without CHAP. It may still choose CHAP
	// when there are Incoming credentials.
	AllowNone bool
	// Group is the name of the auth group that the credentials are of, which tells
	// its users from those of the same name in other groups.
	Group string
	// Incoming are the credentials with which the initiator may prove itself.
	Incoming []Credential
	// Mutual is the credential with which the target proves itself when the
	// initiator asks for that; nil refuses it.
	Mutual *Credential
	// Algorithms are the allowed CHAP algorithms, the preferred one first; nil
	// means DefaultAlgorithms.
	Algorithms []Algorithm
	// TargetAlias, unless empty, is declared to the initiator.
	TargetAlias string
}

// Nobody is the Auth of what is not there, or not for the initiator: whatever it
// proves is wrong, after the same steps as where the algorithms are those of auth, and
// is counted as one more guess at the users of its group.
func (a *Auth) Nobody() Auth {
	name, secret := rand.Text(), rand.Text()
	return Auth{Group: a.Group, Incoming: []Credential{{User: name, Secret: NewSecret(secret)}}, Algorithms: a.Algorithms}
}

// Credential is a CHAP name and its secret.
type Credential struct {
	User   string
	Secret Secret
}

// Secret is a CHAP secret. It prints as "***", however it is formatted,
// logged or marshalled. The text lies behind a pointer because package fmt,
// when a verb does not fit a struct, prints its fields without asking them.
type Secret struct {
	text *string
}

// NewSecret hides a secret's text.
func NewSecret(text string) Secret { return Secret{&text} }

const hidden = "***"

// reveal is the text, for the hash alone.
func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Len is the length of the secret in bytes.
func (s Secret) Len() int { return len(s.reveal()) }

// Equal compares two secrets in a time that depends on their lengths alone.
func (s Secret) Equal(o Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.reveal()), []byte(o.reveal())) == 1
}

// String hides the secret.
func (Secret) String() string { return hidden }

// Format hides the secret from every verb of package fmt.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON hides the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// MinSecretLength is the least length of a secret in bytes, the 96 bits that
// RFC 7143 9.2.1 demands where IPsec does not protect the connection.
const MinSecretLength = 12

// Validate tells why the credential cannot be used; minimum is the least
// length of its secret in bytes.
func (c *Credential) Validate(minimum int) error {
	if c.User == "" || len(c.User) > pdu.MaxValueLength {
		return fmt.Errorf("CHAP name of %d bytes, expected 1 to %d", len(c.User), pdu.MaxValueLength)
	}
	if c.Secret.Len() < minimum {
		return fmt.Errorf("secret of CHAP name %q has %d bytes, expected at least %d", c.User, c.Secret.Len(), minimum)
	}
	return nil
}
