package conf

import (
	"fmt"
	"io"
	"log/slog"
)

// hidden is what a Secret shows of itself.
const hidden = "***"

// Withheld stands for a secret in what Print writes. It is as long as a secret has to
// be, and is none: only Draft accepts it.
const Withheld = "*** not shown ***"

// Secret is a CHAP secret. It prints as ***, whatever the verb or encoder.
// The text is behind a pointer so that even a reflective dump of an unexported
// field shows an address only.
type Secret struct{ text *string }

// NewSecret hides text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the secret itself. The result must not be logged.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// told reports whether there is a secret, and no placeholder for one.
func (s Secret) told() bool { return s.Reveal() != "" && s.Reveal() != Withheld }

// String hides the secret.
func (s Secret) String() string { return hidden }

// Format hides the secret under every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, hidden) }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the secret from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }
