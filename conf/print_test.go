package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lunar/scheduler"
)

// printFiles set each key to something else than its default, in one of them at least.
var printFiles = []string{`
server:
  threads: 2
  cpus: 0-3,5,7-8
  buffers-per-thread: 128MiB
  poll: "off"
  busy-poll: 0s
  poll-budget: 33%
  congestion: cubic
  sandbox: log
  metrics-token-file: /etc/lunar/token
  metrics-certificate-file: /etc/lunar/metrics.pem
  metrics-key-file: /etc/lunar/metrics.key
  control: {read-group: lunar-read, operate-group: "null", admin-group: "7", listen: "127.0.0.1:9261", certificate-file: /c, key-file: /k, token-file: /t, client-ca-file: /a,
    read-clients: [r.example.org], operate-clients: ["- o #"], admin-clients: ["urn:a", a@example.org], audit-file: /var/log/audit, page: true}
  core-dumps: true
  real-time: true
  memory-limit: 1GiB
  nodes: ["0-3", "5,7-8"]
  metrics: "127.0.0.1:9260"
  iser: {immediate-data: 0B, remote-invalidation: false}
  limits: {connections-in-login: 5, login-timeout: 1s, sessions: 6, logins-per-address: 2, logins-per-network: 3, sessions-per-address: 4, sessions-per-network: 5, known-networks: [192.0.2.0/24, "2001:db8::1"], queue-depth: 7, error-recovery-level: 2, max-connections: 3, memory-per-session: 1MiB}
  nop: {interval: 0s, timeout: 1m30s}
log: {level: debug, format: json}
discovery: {auth: d, portals: all}
cache: {size: {per-node: 32MiB}, block-size: 4KiB, huge: "off", segment: /dev/shm/x, checksum: true, dirty-limit: 20MiB, forward-threshold: never}
qos:
  capacity: 100
  capacities: {f: 7, "null": 8}
  overcommit: true
  window: 5
  turn: 50us
  pool: hard
  arbitration: equal
  network:
    dscp: {urgent: EF, low: 1}
    group-numbers: {0: low, 31: high}
    governor: true
    delay: 2500us
    links: {eth0: 25MiB, "bond0.7": 1GiB/s}
    targets: {high: 5ms, medium: 6ms}
  cost: {unit: 8KiB, write-percent: 250}
  groups: {g: {initiators: ["iqn.2026-11.test:*"]}}
  rules:
    - {name: "true", group: g, reservation: {iops: 5, bandwidth: 1MiB}, limit: {bandwidth: 2GiB}, weight: 9, class: urgent}
    - {name: b, initiators: ["*"], target: "iqn.2026-11.test:t", lun: 0, limit: 100, burst: 7, class: low, group-number: true}
portal-groups:
  p: {tag: 7, alua: {state: standby, preferred: true, explicit: false}, listen: ["127.0.0.1:0", "[::1]"], redirect: "other:99"}
  q: {tag: 8, listen-iser: ["eth2", "192.0.2.1"]}
auth-groups:
  d: {chap: [{user: d, secret: "hidden secret 3"}], algorithms: [sha256, md5]}
  g: {chap: [{user: u, secret: "hidden secret 1", initiators: ["iqn.2026-11.test:a*", "iqn.2026-11.test:b"]}, {user: "null", secret: "hidden secret 2"}], mutual: {user: "- #", secret: "hidden secret 4"}, algorithms: []}
  m: {initiators: ["iqn.2026-11.test:*"], networks: [192.0.2.0/24, "2001:db8::/32"]}
ceph: {k: {config: /c, user: "null", keyring-file: "/a b"}}
cluster: {name: prod, node: "null", etcd: {mode: external, endpoints: ["https://192.0.2.1:2379"], ca-file: /ca, certificate-file: /c, key-file: /k}, link: {listen: "192.0.2.1:7", ca-file: /a, certificate-file: /lc, key-file: /lk}, lease: 3s, suspect: 500ms, hold: 9s, lease-cache: false}
volumes:
  i: {type: rbd, ceph: k, image: rbd/a, write: back, cache: true}
  o: {type: rbd, ceph: k, image: rbd/o, owners: ["null", n2], failback: auto, cache: true}
  b: {type: block, path: /dev/x, direct: false, read-only: true, cache: {admission: fussy, min: 1MiB, max: 2MiB, read-ahead: 0B}}
  f: {type: file, path: f, size: 8MiB, block-size: 4096, write: back, soft-threshold: 1MiB, threads: 3, serial: "0123", naa: "5e00000000000001", vendor: "null", product: "?a", physical-block-size: 4096, removable: true, sanitize-rate: 5MiB,
      cache: {flush-age: 1s, dirty-limit: 2%}, protection: 1, protection-file: /p, encryption: {key-file: /k, old-key-file: /o, header-file: /h}}
  "null": {type: null, size: 1MiB, serial: " ab\\0", revision: "1.0", naa: "6024c550000000000000000000000001"}
  "010": {type: ram, size: 1MiB, designators: ["02010009 4c554e4152202020 31", "01030008 5e00000000000002"]}
  sn: {type: file, path: sn, snapshots: {every: 1h, keep: 24}}
  gf: {type: gotgt, driver: file, path: gf, write: sync, cache: {max: 2MiB}}
  gn: {type: gotgt, driver: null, size: 1MiB}
  mi: {type: mirror, members: [/a, b], map: /m, held: 16MiB, window: 2s, size: 1MiB}
  xs: {type: file, path: xs, excess: /e, excess-size: 32MiB, excess-writes: 500}
targets:
  iqn.2026-11.test:t:
    alias: "a: b #c"
    portal-groups: [p]
    redirect: "[2001:db8::1]:3260"
    access:
      - {initiators: ["iqn.2026-11.test:a?*"], networks: [192.0.2.1], auth-group: g, luns: {0: b, 16383: f}}
      - {luns: [{lun: 0, volume: "null", read-only: true}, {lun: 1, volume: "010"}]}
  iqn.2026-11.test:u: {auth-group: m, luns: {0: f}, moved: "1.2.3.4"}
`, `
server: {nodes: 3}
cache: {size: 10%, segment: none, forward-threshold: 64KiB}
qos: {profile: 2s}
volumes: {f: {type: file, path: f, cache: true}, g: {type: file, path: g, write: sync, direct: true}}
targets:
  iqn.2026-11.test:t: {luns: {0: f}}
portal-groups: {p: {alua: {explicit: true}}}
`, `
cluster: {name: lab, node: n1}
portal-groups: {p: {listen: ["127.0.0.1"]}}
cache: {dirty-limit: 7%}
qos: {capacities: {}}
log: {}
`}

// roundTrip prints a configuration and reads it as tgtd check does.
func roundTrip(t *testing.T, c *Config) (string, *Config) {
	t.Helper()
	text, err := Print(c)
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := parse("printed", text, nil, true)
	if err != nil {
		t.Fatalf("%v\nin\n%s", err, text)
	}
	return string(text), again
}

// unshown makes what Print withholds, and what no key says, equal.
func unshown(c *Config) *Config {
	for i := range c.AuthGroups {
		g := &c.AuthGroups[i]
		for j := range g.CHAP {
			g.CHAP[j].Secret = NewSecret(Withheld)
		}
		if g.Mutual != nil {
			g.Mutual.Secret = NewSecret(Withheld)
		}
		g.Algorithms = slices.Clone(g.Algorithms)
	}
	if len(c.QoS.Capacities) == 0 {
		c.QoS.Capacities = nil
	}
	c.Cache.SegmentGiven = false // what was chosen is written out
	return c
}

// TestPrintRoundTrip: what is printed is read to the same configuration. The files set
// every field of the model, so that a new one cannot be printed in a form that is not
// read.
func TestPrintRoundTrip(t *testing.T) {
	set := map[string]bool{}
	for i, file := range printFiles {
		c, _, err := Parse("file", []byte(file))
		if err != nil {
			t.Fatalf("file %d: %v", i, err)
		}
		markSet(set, reflect.ValueOf(c).Elem(), reflect.ValueOf(defaults()).Elem())
		text, again := roundTrip(t, c)
		if unshown(c); !reflect.DeepEqual(c, unshown(again)) {
			t.Errorf("file %d: it differs in %q, printed as\n%s", i, Diff(c, again), text)
		}
		if strings.Contains(text, "hidden") {
			t.Errorf("file %d: a secret is shown in\n%s", i, text)
		}
	}
	for _, field := range fieldsOf(reflect.TypeFor[Config](), nil) {
		if !set[field] {
			t.Errorf("no file of this test sets %s to something else than its default", field)
		}
	}
}

// defaultOf are the objects that keys are read into.
var defaultOf = map[reflect.Type]any{
	reflect.TypeFor[PortalGroup]():    PortalGroup{Tag: 1, ALUA: ALUA{State: "optimized"}},
	reflect.TypeFor[Volume]():         Volume{BlockSize: 512, Write: WriteThrough},
	reflect.TypeFor[VolumeCache]():    VolumeCache{Admission: "lru", ReadAhead: MiB, FlushAge: 5e9},
	reflect.TypeFor[AuthGroup]():      AuthGroup{Algorithms: chapAlgorithms},
	reflect.TypeFor[scheduler.Rule](): scheduler.Rule{Weight: 1},
}

// markSet notes the fields that differ from the defaults.
func markSet(set map[string]bool, v, base reflect.Value) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v, base = v.Elem(), reflect.Zero(v.Type().Elem())
	}
	if d, ok := defaultOf[v.Type()]; ok {
		base = reflect.ValueOf(d)
	}
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			markSet(set, v.Index(i), reflect.Zero(v.Type().Elem()))
		}
	case walked(v.Type()):
		for i := range v.NumField() {
			if !reflect.DeepEqual(v.Field(i).Interface(), base.Field(i).Interface()) {
				set[v.Type().String()+"."+v.Type().Field(i).Name] = true
			}
			markSet(set, v.Field(i), base.Field(i))
		}
	}
}

// walked reports whether a type is a struct of the model.
func walked(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[Secret]() && !strings.HasPrefix(t.PkgPath(), "net/")
}

// fieldsOf are the fields of all structs of the model.
func fieldsOf(t reflect.Type, seen map[reflect.Type]bool) (fields []string) {
	if seen == nil {
		seen = map[reflect.Type]bool{}
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if !walked(t) || seen[t] {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		fields = append(fields, t.String()+"."+t.Field(i).Name)
		fields = append(fields, fieldsOf(t.Field(i).Type, seen)...)
	}
	return fields
}

// TestPrintDefault: the built-in configuration is printed without a warning.
func TestPrintDefault(t *testing.T) {
	c, err := Default("/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := Print(c)
	again, warnings, err := Parse("printed", text)
	if err != nil || len(warnings) > 0 || !reflect.DeepEqual(c, again) {
		t.Errorf("error %v, warnings %v, differs in %v, printed as\n%s", err, warnings, Diff(c, again), text)
	}
}

// TestWithheld: a file with placeholders in place of secrets is a draft, and never one
// to be served.
func TestWithheld(t *testing.T) {
	c, _, err := Parse("file", []byte(printFiles[0]))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := Print(c)
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := f.Draft(nil)
	if told := strings.Count(fmt.Sprint(warnings), "what lunar config prints in place of a secret"); err != nil || told != 4 {
		t.Errorf("found error %v, warnings %v, expected one for each of 4 secrets", err, warnings)
	}
	if _, _, err := Load(path); err == nil || strings.Count(err.Error(), "serve and apply refuse") != 4 {
		t.Errorf("found %v, expected that each of 4 secrets is missing", err)
	}
	if _, _, err := Parse("text", text); err == nil {
		t.Error("a text with placeholders was accepted")
	}
}
