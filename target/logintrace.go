package target

import (
	"context"
	"log/slog"
	"strings"

	"lunar/internal/iscsiname"
	"lunar/target/pdu"
)

// trace logs the keys of a login PDU at debug level. The proofs of CHAP are left
// out, with the challenges: both together let a secret be guessed. partial is that
// of a text that goes on in the next PDU, whose pieces say nothing safe.
func (p *loginPhase) trace(what string, text []byte, partial bool) {
	if !p.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	keys := "text in pieces"
	if !partial && !p.partial[what] {
		keys = shownKeys(text)
	}
	p.partial[what] = partial
	p.log.Debug(what, "initiator", iscsiname.Printable(p.negotiation.InitiatorName()), "keys", keys)
}

// shownKeys lists the pairs of a text.
func shownKeys(text []byte) string {
	pairs, err := pdu.ParseText(text)
	if err != nil {
		return "text that is none"
	}
	var shown []string
	for _, pair := range pairs {
		switch pair.Key {
		case "CHAP_R", "CHAP_C":
			pair.Value = "***"
		}
		shown = append(shown, pair.Key+"="+iscsiname.Printable(pair.Value))
	}
	return strings.Join(shown, " ")
}
