package lint

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers says which packages of the project the packages of a directory may
// import, test files and test-support packages excepted; the longest prefix
// decides. A name covers what is below it.
var layers = map[string][]string{
	"cmd/tgtd":           {"daemon", "internal/cli", "internal/systemd", "target/tcp/kernelqtcp"},
	"cmd/lunar":          {"cluster", "control", "conf", "daemon/offline", "internal/bulk", "internal/bytesize", "internal/cli", "internal/iscsiname"},
	"daemon":             {"cluster", "control", "conf", "target", "iser", "cache", "backstore", "scheduler", "internal"},
	"daemon/volumes":     {"cluster", "daemon/state", "daemon/medium", "daemon/machine", "control", "conf", "target/scsi", "cache", "backstore", "internal"},
	"daemon/machine":     {"conf", "cache", "internal"},
	"daemon/state":       {"cluster/revisions", "daemon/medium", "conf", "backstore", "internal"},
	"daemon/medium":      {"conf", "backstore", "internal"},
	"daemon/offline":     {"daemon/state", "daemon/medium", "control", "conf", "backstore", "internal"},
	"control":            {"internal/shell", "internal/bytesize"},
	"control/webpage":    {},
	"control/overview":   {"control", "internal"},
	"control/server":     {"control", "internal"},
	"control/token":      {"control", "internal"},
	"control/events":     {"control"},
	"cmd/tgtload":        {"internal"},
	"conf":               {"scheduler", "internal/trust"},
	"conf/foreign":       {"conf"},
	"target":             {"target/pdu", "target/login", "target/scsi", "scheduler", "cache", "backstore", "internal"},
	"iser":               {"target", "scheduler", "backstore", "internal"},
	"iser/verbs":         {"internal"},
	"cache":              {"backstore", "internal"},
	"scheduler":          {"internal"},
	"target/pdu":         {"internal"},
	"target/login":       {"target/pdu", "internal"},
	"target/scsi":        {"scheduler", "backstore", "internal"},
	"target/tcp":         {"target", "scheduler", "internal"},
	"target/targettest":  {"target", "backstore", "internal"},
	"backstore":          {"backstore", "internal"},
	"backstore/windows":  {"backstore", "scheduler", "internal"},
	"cluster":            {"internal"},
	"cluster/promise":    {"cluster", "scheduler", "internal"},
	"internal":           {"internal"},
	"internal/bulk":      {"backstore", "internal"},
	"internal/bulk/rdma": {"iser/verbs", "internal"},
	"internal/initiator": {"internal"},
	"scripts/sim":        {"scheduler", "cache", "internal"},
	"scripts/tgtsim":     {"scripts/sim"},
	"scripts":            {"cluster", "control", "internal", "conf", "target", "backstore", "scheduler"},
}

// TestImports: imports point down only.
func TestImports(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test {
			continue
		}
		allowed, layer := allowedFor(f.dir)
		if allowed == nil {
			t.Errorf("%s: no layer has package %s", f.path, f.dir)
			continue
		}
		for _, spec := range f.ast.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			imported, own := strings.CutPrefix(path, "lunar/")
			if own && !below(imported, layer) && !slices.ContainsFunc(allowed, func(a string) bool { return below(imported, a) }) {
				t.Errorf("%s:%d: %s imports %s, expected only what is below it: %v", f.path, f.line(spec), f.dir, imported, allowed)
			}
		}
	}
}

// allowedFor returns the layer of a directory; nil if it has none.
func allowedFor(dir string) (allowed []string, layer string) {
	for l, a := range layers {
		if below(dir, l) && len(l) > len(layer) {
			allowed, layer = a, l
		}
	}
	return allowed, layer
}

// below reports whether path is dir or is in it.
func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
