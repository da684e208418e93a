package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUsableMemory(t *testing.T) {
	const mib = 1 << 20
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"machine":           {map[string]string{"proc/self/cgroup": "0::/\n"}, 1000 * mib},
		"no cgroups":        {nil, 1000 * mib},
		"unlimited":         {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 1000 * mib},
		"service":           {map[string]string{"proc/self/cgroup": "0::/system.slice/tgtd.service\n", "sys/fs/cgroup/system.slice/tgtd.service/memory.max": "314572800\n"}, 300 * mib},
		"slice":             {map[string]string{"proc/self/cgroup": "0::/system.slice/tgtd.service\n", "sys/fs/cgroup/system.slice/memory.max": "209715200\n"}, 200 * mib},
		"container":         {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "104857600\n"}, 100 * mib},
		"version 1":         {map[string]string{"proc/self/cgroup": "5:cpu:/x\n4:memory:/x\n0::/\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "52428800\n"}, 50 * mib},
		"above the machine": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 1000 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			fake(t, root, "proc/meminfo", "MemTotal:  1024000 kB\nMemFree: 1 kB\n")
			for path, text := range test.files {
				fake(t, root, path, text)
			}
			if got, err := UsableMemory(root); err != nil || got != test.want {
				t.Errorf("found %d, %v, expected %d", got, err, test.want)
			}
		})
	}
	if _, err := UsableMemory(t.TempDir()); err == nil {
		t.Error("no /proc: found no error")
	}
}

// fake writes a file and its directories below root.
func fake(t *testing.T, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
