package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestCheckCongestion: check asks whether the kernel has a congestion control, and says
// so where it cannot tell.
func TestCheckCongestion(t *testing.T) {
	const dir = kernelModules + "/6.1.0-test/"
	debian := map[string]string{
		loadedCongestion: "reno cubic\n", allowedCongestion: "reno\n", kernelRelease: "6.1.0-test\n",
		dir + "modules.dep":   "kernel/net/ipv4/tcp_bbr.ko.xz: kernel/lib/x.ko\nkernel/net/ipv4/tcp_westwood.ko:\n",
		dir + "modules.alias": "alias tcp_odd_one other\n",
	}
	for _, test := range []struct {
		name, without, want string // of want, ! begins an error
	}{
		{"system", loadedCongestion, ""},
		{"reno", "", ""},
		{"cubic", "", "for processes with CAP_NET_ADMIN only"},
		{"cubic", allowedCongestion, "for processes with CAP_NET_ADMIN only"},
		{"bbr", "", "a module that the kernel loads"},
		{"westwood", "", "a module that the kernel loads"},
		{"odd-one", "", "a module that the kernel loads"},
		{"odd-one", dir + "modules.alias", `!found "odd-one"`},
		{"west", "", `!found "west", expected one of the kernel's (reno, cubic); module tcp_west is not in `},
		{"bbr", dir + "modules.dep", `it cannot be told whether the kernel has a module for "bbr": open `},
		{"bbr", kernelRelease, "it cannot be told"},
		{"bbr", loadedCongestion, `it cannot be told whether the kernel has "bbr": open `},
	} {
		root := t.TempDir()
		for path, text := range debian {
			if err := os.MkdirAll(filepath.Join(root, filepath.Dir(path)), 0o755); err != nil {
				t.Fatal(err)
			}
			if path != test.without {
				writeFile(t, filepath.Join(root, path), text)
			}
		}
		notes, err := checkCongestion(root, test.name)
		found := strings.Join(notes, "\n")
		if err != nil {
			found = "!" + err.Error()
		}
		if found = strings.Replace(found, "server.congestion: ", "", 1); !strings.Contains(found, test.want) || found != "" && test.want == "" {
			t.Errorf("%s without %q: found %q, expected %q", test.name, test.without, found, test.want)
		}
		if strings.HasPrefix(found, "!") != strings.HasPrefix(test.want, "!") {
			t.Errorf("%s without %q: found %q, expected %q", test.name, test.without, found, test.want)
		}
	}
}

// TestCheckAsksTheKernel: the check command tells it.
func TestCheckAsksTheKernel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tgtd.yaml")
	writeFile(t, path, "server: {congestion: no-such-one}\n")
	var out, err eventually.Output
	run(t.Context(), []string{"check", path}, cli.Console{Out: &out, Err: &err})
	if !strings.Contains(out.String()+err.String(), "server.congestion: ") {
		t.Errorf("found %q, %q, expected something of the congestion control", &out, &err)
	}
}
