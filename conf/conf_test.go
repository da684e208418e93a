package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"lunar/internal/trust"

	"lunar/scheduler"
)

// TestDefault states what the commented default file means.
func TestDefault(t *testing.T) {
	got, err := Default("/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		Server: Server{
			BuffersPerThread: 64 * MiB, Poll: PollAdaptive, BusyPoll: 200 * time.Microsecond, PollBudget: 20,
			Sandbox: SandboxEnforce, Congestion: AutoCongestion,
			ISER:   ISER{ImmediateData: 8 * KiB, RemoteInvalidation: true},
			Limits: Limits{ConnectionsInLogin: 256, LoginTimeout: 15 * time.Second, Sessions: 1024, QueueDepth: 128, MaxConnections: 1, MemoryPerSession: 16 * MiB},
			NOP:    NOP{15 * time.Second, 10 * time.Second},
		},
		Log:   Log{"info", "text"},
		Cache: Cache{Huge: "auto", DirtyLimit: Amount{Percent: 50}},
		QoS:   QoS{Window: 32, Turn: 30 * time.Microsecond, Cost: scheduler.Cost{Unit: 4096, WritePercent: 100}, Network: scheduler.Network{Delay: 1e6}},
		PortalGroups: []PortalGroup{{Name: "local", Tag: 1, ALUA: ALUA{State: "optimized"}, Listen: []netip.AddrPort{
			netip.MustParseAddrPort("127.0.0.1:3260"), netip.MustParseAddrPort("[::1]:3260"),
		}}},
		Volumes: []Volume{{
			Name: "default", Type: FileVolume, Path: "/state/default.img", Size: GiB, BlockSize: 512,
			Write: WriteThrough,
		}},
		Targets: []Target{{
			Name: "iqn.2026-11.example.lunar:default", Alias: "Lunar default volume",
			PortalGroups: []string{"local"},
			Access:       []Access{{LUNs: []LUN{{0, "default", false}}}},
		}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestDefaultFile: the file has no warnings, and every value that it spells
// out is the default, so that leaving it out changes nothing.
func TestDefaultFile(t *testing.T) {
	written, warnings, err := Parse("tgtd.yaml", DefaultFile)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("warnings %v, error %v", warnings, err)
	}
	short, _, err := Parse("short", []byte(`
portal-groups: {local: {listen: ["127.0.0.1:3260", "[::1]:3260"]}}
volumes: {default: {type: file, path: default.img, size: 1GiB}}
targets:
  iqn.2026-11.example.lunar:default: {alias: Lunar default volume, luns: {0: default}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(written, short) {
		t.Errorf("got  %+v\nwant %+v", written, short)
	}
}

// TestDefaultFileExamples: the examples that are commented out are valid too.
func TestDefaultFileExamples(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("another secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lines []string
	keyed := 0
	for line := range strings.Lines(string(DefaultFile)) {
		body := strings.TrimPrefix(strings.TrimLeft(line, " "), "# ")
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		example := strings.HasPrefix(strings.TrimLeft(line, " "), "# ") && exampleLine(body)
		if example {
			line = indent + body
			keyed++
		}
		line = strings.ReplaceAll(line, "/etc/lunar/host2.secret", secret)
		line = strings.ReplaceAll(line, "secret-file: /etc/lunar/lunar.secret", `secret: "mutual secret"`)
		lines = append(lines, line)
	}
	c, _, err := Parse("examples", []byte(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	if keyed < 20 || len(c.AuthGroups) != 2 || len(c.QoS.Rules) != 2 || len(c.QoS.Groups) != 1 || len(c.Volumes) != 6 || len(c.Targets[0].Access) != 2 || len(c.Server.CPUs) != 4 ||
		c.Cache.Segment != DefaultSegment || c.Cache.Size.Bytes != GiB || !c.Server.Metrics.IsValid() {
		t.Errorf("%d example lines gave %+v", keyed, c)
	}
}

// exampleLine tells examples from prose: they are keys or list elements.
func exampleLine(body string) bool {
	body = strings.TrimLeft(body, " ")
	key, _, isKey := strings.Cut(body, ":")
	return strings.HasPrefix(body, "- ") || isKey && !strings.ContainsAny(key, " ,\"") && key != "default"
}

// TestNormalForm: order and spelling make no difference.
func TestNormalForm(t *testing.T) {
	one, _, err1 := Parse("one", []byte(`
portal-groups: {a: {listen: [":3260"]}, b: {tag: 2, listen: ["192.0.2.1:3261"]}}
auth-groups: {g: {initiators: ["IQN.2026-01.a:*", "iqn.2026-01.a:*"]}, h: {networks: [192.0.2.7/24]}}
volumes: {v: {type: ram, size: 1GiB}, w: {type: null, size: 1024MiB}}
targets:
  iqn.2026-01.a:t:
    auth-group: g
    access:
    - {networks: [10.1.1.1], luns: {1: v, 0: w}}
    - {auth-group: none, luns: [{lun: 0, volume: v, read-only: true}]}
`))
	two, _, err2 := Parse("two", []byte(`
targets:
  iqn.2026-01.a:t:
    portal-groups: [b, a]
    access:
    - auth-group: g
      networks: [10.1.1.1/32]
      luns: [{volume: w, lun: 0, read-only: false}, {volume: v, lun: 1}]
    - luns: [{read-only: true, lun: 0, volume: v}]
volumes: {w: {type: "null", size: 1GiB}, v: {type: ram, size: 1024 MiB}}
auth-groups: {h: {networks: [192.0.2.0/24]}, g: {initiators: ["iqn.2026-01.a:*"]}}
portal-groups: {b: {tag: 2, listen: ["192.0.2.1:3261"]}, a: {listen: ["[::]:3260", "0.0.0.0"]}}
`))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if !reflect.DeepEqual(one, two) {
		t.Errorf("one %+v\ntwo %+v", one, two)
	}
}

// TestCache: every key of the cache ends where it belongs.
func TestCache(t *testing.T) {
	c, warnings, err := Parse("cache", []byte(`
server: {nodes: ["4-5,0", "1"], metrics: "[::1]:9260"}
cache: {size: {per-node: 2GiB}, block-size: 64KiB, huge: require, segment: /dev/hugepages/x/, dirty-limit: 1GiB, forward-threshold: 64KiB, checksum: true}
portal-groups: {a: {}}
volumes:
  a: {type: file, path: a, write: back, cache: {admission: fussy, min: 1MiB, max: 2MiB, read-ahead: 0B, flush-age: 2m, dirty-limit: 10%}}
  b: {type: block, path: /b, cache: true}
targets: {"iqn.2026-01.a:t": {luns: {0: a, 1: b}, auth-group: none}}
`))
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	want := Cache{Amount{Bytes: 2 * GiB}, true, 64 * KiB, "require", "/dev/hugepages/x", true, Amount{Bytes: GiB}, 64 * KiB, true}
	if c.Cache != want {
		t.Errorf("found %+v, expected %+v", c.Cache, want)
	}
	a := VolumeCache{"fussy", MiB, 2 * MiB, 0, 2 * time.Minute, Amount{Percent: 10}}
	if v := c.Volumes[0]; *v.Cache != a || v.Write != WriteBack {
		t.Errorf("found %+v, expected %+v", *v.Cache, a)
	}
	if v := c.Volumes[1]; *v.Cache != (VolumeCache{"lru", 0, 0, MiB, 5 * time.Second, Amount{}}) || v.Write != WriteThrough {
		t.Errorf("found %+v", *v.Cache)
	}
	if s := c.Server; !reflect.DeepEqual(s.Nodes, Nodes{CPUs: [][]int{{0, 4, 5}, {1}}}) || s.Metrics.String() != "[::1]:9260" {
		t.Errorf("found %+v", s)
	}
}

// TestCacheDefaults: which memory and which way to the file a volume gets that
// says nothing of them.
func TestCacheDefaults(t *testing.T) {
	for _, test := range []struct {
		cache, volume     string
		segment           string
		direct, mayBuffer bool
	}{
		{"size: 1GiB", "cache: true", "", true, true},
		{"size: 1GiB", "cache: true, direct: true", "", true, false},
		{"size: 1GiB", "cache: true, direct: false", "", false, false},
		{"size: 1GiB", "cache: false", "", false, false},
		{"size: 1GiB", "cache: true, write: back", DefaultSegment, true, true},
		{"size: 1GiB, segment: /dev/shm/x", "cache: true, write: back", "/dev/shm/x", true, true},
		{"size: 1GiB, segment: /dev/shm/x", "cache: true", "/dev/shm/x", true, true},
		{"size: 1GiB, segment: none", "cache: true, write: sync", "", true, true},
	} {
		c, _, err := Parse("f", []byte("cache: {"+test.cache+"}\nvolumes: {v: {type: file, path: v, "+test.volume+"}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if v := c.Volumes[0]; c.Cache.Segment != test.segment || v.Direct != test.direct || v.MayBuffer != test.mayBuffer {
			t.Errorf("%+v: found segment %q, direct %v, may buffer %v", test, c.Cache.Segment, v.Direct, v.MayBuffer)
		}
	}
}

func TestAmount(t *testing.T) {
	for text, want := range map[string]Amount{
		"4GiB": {Bytes: 4 * GiB}, "0B": {}, "1%": {Percent: 1}, "90%": {Percent: 90},
	} {
		if got, err := ParseAmount(text); err != nil || got != want || got.String() != text || got.Given() != (text != "0B") {
			t.Errorf("%s: found %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "%", "0%", "91%", "-1%", "01%", "1.5%", "50 %", "4GB", "50"} {
		if got, err := ParseAmount(text); err == nil {
			t.Errorf("%q: found %v, expected an error", text, got)
		}
	}
	for whole, want := range map[Size]Size{0: 0, 99: 32, 100: 33, 3 * GiB: 1063004405, 1 << 62: 1521856386081038008} {
		if got := (Amount{Percent: 33}).Of(whole); got != want {
			t.Errorf("33%% of %d: found %d, expected %d", whole, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	_, warnings, err := Parse("w.yaml", []byte(`
server: {metrics: "192.0.2.1:9260"}
cache: {huge: off}

auth-groups: {idle: {}}
volumes: {v: {type: ram, size: 1GiB}, idle: {type: ram, size: 1GiB}}
portal-groups: {used: {}, idle: {tag: 2, listen: ["192.0.2.1:3261"]}}
targets:
  iqn.2026-01.a:t:
    portal-groups: [used]
    access: [{luns: {1: v}}, {networks: [192.0.2.1], luns: {0: v}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"w.yaml:2:19: server.metrics: found 192.0.2.1:9260, expected a loopback address",
		"w.yaml:3:8: cache: found no size",
		"w.yaml:5:21: auth-groups.idle: found a definition that nothing uses",
		"w.yaml:6:45: volumes.idle: found a definition that nothing uses",
		"w.yaml:7:33: portal-groups.idle: found a definition that nothing uses",
		"w.yaml:10:5: targets.iqn.2026-01.a:t: found a target on all addresses without authentication",
		"w.yaml:11:21: targets.iqn.2026-01.a:t.access[0].luns: found no LUN 0",
		"w.yaml:11:30: targets.iqn.2026-01.a:t.access[1]: found a rule that is never reached",
	}
	checkWarnings(t, warnings, want)
}

func TestCacheWarnings(t *testing.T) {
	_, warnings, err := Parse("w.yaml", []byte(`
cache: {size: 1GiB}
volumes: {v: {type: file, path: v, direct: false, cache: true}}
targets: {"iqn.2026-01.a:t": {luns: {0: v}, auth-group: none}}
`))
	if err != nil {
		t.Fatal(err)
	}
	checkWarnings(t, warnings, []string{"w.yaml:3:44: volumes.v.direct: found false behind the cache, expected true: else the page cache"})
	_, warnings, err = Parse("w.yaml", []byte(`
cache: {size: 1GiB}
volumes: {v: {type: file, path: v}}
targets: {"iqn.2026-01.a:t": {luns: {0: v}, auth-group: none}}
`))
	if err != nil {
		t.Fatal(err)
	}
	checkWarnings(t, warnings, []string{"w.yaml:2:15: cache.size: found 1GiB of memory that no volume uses"})
}

// TestRetiredKeys: a file of the release before is read, with a warning for each key that
// has no effect any more.
func TestRetiredKeys(t *testing.T) {
	_, warnings, err := Parse("w.yaml", []byte("server:\n  batching: {static: 8}\n  max-delay: 10us\n"))
	if err != nil {
		t.Fatal(err)
	}
	checkWarnings(t, warnings, []string{"w.yaml: targets: found no target", "w.yaml:2:13: server.batching: found a key that has no effect any more", "w.yaml:3:14: server.max-delay: found a key that has no effect any more"})
}

func checkWarnings(t *testing.T, warnings []Warning, want []string) {
	t.Helper()
	if len(warnings) != len(want) {
		t.Fatalf("got %v", warnings)
	}
	for i, w := range want {
		if !strings.HasPrefix(warnings[i].String(), w) {
			t.Errorf("got %v, want %s", warnings[i], w)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "tgtd.yaml"), filepath.Join(dir, "secret")
	write := func(path, text string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	config := `
auth-groups: {g: {chap: [{user: a, secret: "inline secret"}], mutual: {user: t, secret-file: "` + secret + `"}}}
volumes: {v: {type: ram, size: 1GiB}}
targets: {"iqn.2026-01.a:t": {auth-group: g, luns: {0: v}}}
`
	for _, test := range []struct {
		fileMode, secretMode os.FileMode
		warnings             int
	}{{0o600, 0o600, 0}, {0o640, 0o640, 0}, {0o644, 0o600, 1}, {0o604, 0o644, 2}, {0o600, 0o602, 1}} {
		write(file, config, test.fileMode)
		write(secret, "secret of a file\r\n", test.secretMode)
		c, warnings, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(warnings) != test.warnings {
			t.Errorf("modes %o, %o: found %v, expected %d warnings", test.fileMode, test.secretMode, warnings, test.warnings)
		}
		g := c.AuthGroup("g")
		if g.CHAP[0].Secret.Reveal() != "inline secret" || g.Mutual.Secret.Reveal() != "secret of a file" {
			t.Error("a secret changed on its way")
		}
	}
	if err := os.Chmod(file, 0o602); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(file); !errors.As(err, new(trust.Error)) {
		t.Errorf("a configuration that everybody may change: found %v", err)
	}
	write(file, config, 0o600)
	if err := errors.Join(os.Remove(secret), syscall.Mkfifo(secret, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(file); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe as secret: found %v", err)
	}
	if _, _, err := Load(filepath.Join(dir, "missing")); !os.IsNotExist(unwrapped(err)) {
		t.Errorf("found %v, expected a missing file", err)
	}
}

func unwrapped(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return err
}

func TestSecretPrintsStars(t *testing.T) {
	type hiding struct{ inside Secret }
	c := Credential{User: "user", Secret: NewSecret("hunter2hunter2")}
	asJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s %q %x %d", c, c, c, c.Secret, c.Secret, c.Secret, c.Secret),
		fmt.Sprintf("%v %+v %#v", hiding{c.Secret}, hiding{c.Secret}, hiding{c.Secret}), string(asJSON), c.Secret.LogValue().String(),
	} {
		if strings.Contains(text, "hunter") || strings.Contains(text, "68756e") {
			t.Errorf("a secret shows: %s", text)
		}
	}
}

func TestSetListen(t *testing.T) {
	c, err := Default("/state", []string{":3261", "192.0.2.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.PortalGroups[0].Listen); got != "[0.0.0.0:3261 192.0.2.1:0 [::]:3261]" {
		t.Errorf("got %v", got)
	}
	for _, bad := range [][]string{{"localhost:3260"}, {"::1:x"}, {":3260", "127.0.0.1:3260"}, {":65536"}, {""}} {
		if _, err := Default("/state", bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"iqn.2026-11.example.lunar:default":           true,
		"iqn.2001-04.com.acme":                        true,
		"iqn.2001-04.com.acme:storage.disk2.sys1.xyz": true,
		"iqn.2001-04.com.acme:größe":                  true,
		"eui.02004567a425678d":                        true,
		"naa.52004567ba64678d":                        true,
		"naa.62004567ba64678d0123456789abcdef":        true,
		"iqn." + strings.Repeat("a", 230):             false,
		"iqn.2026-11.a:" + strings.Repeat("a", 209):   true,
		"iqn.2026-11.a:" + strings.Repeat("a", 210):   false,
		"iqn.2026-00.a:b":                             false,
		"iqn.2026-11.a:":                              false,
		"iqn.2026-11.-a:b":                            false,
		"iqn.2026-11.a..b":                            false,
		"iqn.2026-11.A:b":                             false,
		"iqn.2026-11.a:b_c":                           true, "iqn.2026-11.a_b:c": false,
		"iqn.2026-11.a:b c":    false,
		"eui.02004567A425678D": false,
		"naa.52004567ba64678":  false,
		"disk":                 false,
		"":                     false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("%q: found %v, expected %v", name, got, want)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{
		"1KiB": KiB, "64MiB": 64 * MiB, "10 GiB": 10 * GiB, "8388607TiB": 8388607 * TiB, "0KiB": 0,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%s: found %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "KiB", "1KB", "-1KiB", "+1KiB", "1.5GiB", "8388608TiB", "0x1KiB", "1kib", "1_0KiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q was taken for %d", text, got)
		}
	}
	for size, want := range map[Size]string{0: "0B", 512: "512B", 1536 * KiB: "1536KiB", 3 * TiB: "3TiB"} {
		if size.String() != want {
			t.Errorf("found %v, expected %s", size, want)
		}
	}
}

func TestCPULists(t *testing.T) {
	for text, want := range map[string]string{"0": "[0]", "0-3,8": "[0 1 2 3 8]", "5,1-2,2": "[1 2 5]"} {
		if got, ok := parseCPUs(text); !ok || fmt.Sprint(got) != want {
			t.Errorf("%s: found %v", text, got)
		}
	}
	for _, text := range []string{"", "-1", "3-1", "0-9999999", "a", "1,,2"} {
		if got, ok := parseCPUs(text); ok {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"thread": "threads", "blocksize": "block-size", "Path": "path", "zzz": "", "x": ""} {
		if got, _ := nearest(name, []string{"threads", "block-size", "path"}); got != want {
			t.Errorf("%s: found %q, expected %q", name, got, want)
		}
	}
}

// TestByteOrderMark: a mark means nothing, and moves no position.
func TestByteOrderMark(t *testing.T) {
	plain, _, err1 := Parse("f", DefaultFile)
	marked, _, err2 := Parse("f", append([]byte("\xef\xbb\xbf"), DefaultFile...))
	if err1 != nil || err2 != nil || !reflect.DeepEqual(plain, marked) {
		t.Errorf("errors %v, %v", err1, err2)
	}
	if _, _, err := Parse("f", []byte("\xef\xbb\xbflog: {level: loud}\n")); err == nil || !strings.HasPrefix(err.Error(), "f:1:14: log.level: ") {
		t.Errorf("found %v", err)
	}
}

// TestKeyInPlaceOfPath: a key that stands where its file's path belongs is refused,
// and not quoted; paths of the same length are paths.
func TestKeyInPlaceOfPath(t *testing.T) {
	for _, test := range []struct {
		path string
		key  bool
	}{
		{strings.Repeat("0123abCD", 8), true},
		{strings.Repeat("Ab3+", 10) + "xyz=", true},
		{"/tmp/TestEncryptedVolumes1940793974/001/key", false},
		{"/" + strings.Repeat("a", 63), false},
		{"keys/database", false},
	} {
		_, _, err := Parse("f", []byte("volumes: {v: {type: file, path: /a, size: 1MiB, encryption: {key-file: "+test.path+"}}}\n"))
		if (err != nil) != test.key || err != nil && strings.Contains(err.Error(), test.path[:8]) {
			t.Errorf("%s: found %v", test.path, err)
		}
	}
}
