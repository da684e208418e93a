package main

import (
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
)

// TestConfigRoundTrip: what tgtd config prints passes check, is what is running, and is
// neither applied nor served before the secrets are in it.
func TestConfigRoundTrip(t *testing.T) {
	l := serveLive(t, liveConfig)
	l.tgtd(exitOK, "drain", "a") // the head tells of it
	text, file := l.tgtd(exitOK, "config"), filepath.Join(l.dir, "printed.yaml")
	l.has(text, "# drain: portal-groups.a", "# Secrets are not shown")
	writeFile(t, file, text)
	l.has(l.tgtd(exitOK, "check", file), "what tgtd config prints in place of a secret", "ok: ")
	const missing = "auth-groups.hosts.chap[0].secret: found what tgtd config prints in place of a secret"
	l.has(l.tgtd(exitFailure, "apply", file), "printed.yaml was not applied", missing)
	whole := filepath.Join(l.dir, "whole.yaml")
	writeFile(t, whole, strings.ReplaceAll(text, conf.Withheld, "the first secret"))
	l.has(l.tgtd(exitOK, "apply", whole), "nothing to change")
	l.server.stop()
	l.has(l.tgtd(exitFailure, "serve", "--config", file), missing)
}
