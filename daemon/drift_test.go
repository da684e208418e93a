package daemon

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
)

// TestDrift: whatever is changed at run time is told by config, status, metrics and dry
// runs until it is undone, and each change is one line of the log.
func TestDrift(t *testing.T) {
	l := serveLive(t, liveConfig)
	changes := 0
	expect := func(kinds map[string]string) {
		t.Helper()
		status, config, metrics := l.tgtd(cli.ExitOK, "status"), l.tgtd(cli.ExitOK, "config"), l.metrics()
		for _, kind := range []string{"configuration", "qos", "access", "drain"} {
			what, differs := kinds[kind]
			want := "lunar_config_drift{kind=\"" + kind + "\"} 0"
			if told := strings.Contains(status, "differs from the configuration file: "+kind+": "+what); told != differs {
				t.Errorf("status tells %s: %v, expected %v\n%s", kind, told, differs, status)
			}
			if told := strings.Contains(config, "# "+kind+": "+what); told != differs {
				t.Errorf("config tells %s: %v, expected %v\n%s", kind, told, differs, config)
			}
			if strings.Contains(metrics, want) == differs {
				t.Errorf("metrics have %s, expected that they tell %s: %v", want, kind, differs)
			}
		}
		if n := strings.Count(l.log.String(), "msg=change"); n != changes {
			t.Errorf("found %d changes in the log, expected %d\n%s", n, changes, l.log)
		}
	}
	do := func(args ...string) { t.Helper(); l.tgtd(cli.ExitOK, args...); changes++ }
	expect(nil)
	do("drain", "a")
	do("alua", "set", "a", "--state", "standby", "--volume", "ram")
	do("qos", "set", "mine", "--initiators", "*", "--limit", "5")
	other := filepath.Join(l.dir, "other.yaml")
	writeFile(t, other, strings.Replace(liveConfig, "size: 1MiB}\n  ram", "size: 2MiB}\n  ram", 1))
	l.has(l.tgtd(cli.ExitOK, "apply", "-n", other), "stays as changed at run time: drain: portal-groups.a: ", "stays as changed at run time: access: portal-groups.a.alua: volume ram has standby, the file has optimized", "qos.rules.mine: removed")
	changes++ // refused or not, and dry
	l.has(l.tgtd(cli.ExitOK, "apply", other), "Not the file that the server was started with, "+l.file)
	changes++
	do("qos", "set", "mine", "--initiators", "*", "--limit", "5")
	expect(map[string]string{"configuration": "volumes.file.size: running with 2MiB, the file has 1MiB", "qos": "qos.rules.mine: new", "access": "portal-groups.a.alua: volume ram has standby", "drain": "portal-groups.a: logins are refused"})
	l.tgtd(cli.ExitFailure, "drain", "nowhere")
	changes++
	do("drain", "a", "--off")
	do("alua", "set", "a", "--state", "optimized")
	do("apply", l.file, "--allow-shrink", "file")
	expect(nil)
	l.serving.stop()
	if n := strings.Count(l.log.String(), `msg=change what="stop the server" by=signal outcome=done`); n != 1 {
		t.Errorf("found %d lines of the stop in\n%s", n, l.log)
	}
	if want := `result="portal-groups.a: logins are refused until later; sessions asked to log out: 0"`; !strings.Contains(l.log.String(), want) {
		t.Errorf("found no %q in\n%s", want, l.log)
	}
	if !bytes.Contains([]byte(l.log.String()), []byte("outcome=refused")) || strings.Contains(l.log.String(), "the first secret") {
		t.Errorf("found no refusal, or a secret, in\n%s", l.log)
	}
}
