package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/internal/cli"
)

// TestConfigRoundTrip: what lunar config prints passes check, is what is running, and is
// neither applied nor served before the secrets are in it.
func TestConfigRoundTrip(t *testing.T) {
	l := serveLive(t, liveConfig)
	l.tgtd(cli.ExitOK, "drain", "a") // the head tells of it
	text, file := l.tgtd(cli.ExitOK, "config"), filepath.Join(l.dir, "printed.yaml")
	l.has(text, "# drain: portal-groups.a", "# Secrets are not shown")
	writeFile(t, file, text)
	l.has(l.tgtd(cli.ExitOK, "check", file), "what lunar config prints in place of a secret", "ok: ")
	const missing = "auth-groups.hosts.chap[0].secret: found what lunar config prints in place of a secret"
	l.has(l.tgtd(cli.ExitFailure, "apply", file), "printed.yaml was not applied", missing)
	whole := filepath.Join(l.dir, "whole.yaml")
	writeFile(t, whole, strings.ReplaceAll(text, conf.Withheld, "the first secret"))
	l.has(l.tgtd(cli.ExitOK, "apply", whole), "nothing to change")
	l.serving.stop()
	l.has(l.tgtd(cli.ExitFailure, "serve", "--config", file), missing)
}
