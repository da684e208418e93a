package backstore_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must returns s or ends the test.
func must[T any](t testing.TB) func(T, error) T {
	return func(s T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// memoryDir returns a directory on a file system in memory.
func memoryDir(t testing.TB) string {
	t.Helper()
	var sfs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &sfs); err != nil || sfs.Type != unix.TMPFS_MAGIC {
		t.Skip("/dev/shm is no tmpfs here")
	}
	dir, err := os.MkdirTemp("/dev/shm", "backstore")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// diskDir returns a directory on a file system that is not in memory.
func diskDir(t testing.TB) string {
	t.Helper()
	for _, base := range []string{os.TempDir(), "/var/tmp"} {
		var sfs unix.Statfs_t
		if err := unix.Statfs(base, &sfs); err != nil || sfs.Type == unix.TMPFS_MAGIC {
			continue
		}
		dir, err := os.MkdirTemp(base, "backstore")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	t.Skip("every temporary directory is in memory here")
	return ""
}

func openFile(t *testing.T, c backstore.FileConfig) backstore.Store {
	t.Helper()
	if c.Size == 0 {
		c.Size = size
	}
	c.Intents.Dir = filepath.Dir(c.Path)
	return must[backstore.Store](t)(backstore.OpenFile(c))
}

func TestFileInMemory(t *testing.T) {
	for name, ring := range modes {
		t.Run(name, func(t *testing.T) {
			backstoretest.Run(t, backstoretest.Subject{Ring: ring, Open: func(t *testing.T) backstore.Store {
				return openFile(t, backstore.FileConfig{Path: filepath.Join(memoryDir(t), "v"), Size: backstoretest.Size})
			}})
		})
	}
}

// modes are the two ways in which calls that may block are made.
var modes = map[string]bool{"ring": true, "workers": false}

func TestFileOnDisk(t *testing.T) {
	for name, config := range map[string]backstore.FileConfig{
		"buffered": {}, "sync": {Sync: true}, "direct": {Direct: true, BlockSize: 4096},
	} {
		for mode, ring := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel() // it mostly waits for the device
				backstoretest.Run(t, backstoretest.Subject{Ring: ring, BlockSize: config.BlockSize, Open: func(t *testing.T) backstore.Store {
					c := config
					c.Path, c.Size = filepath.Join(diskDir(t), "v"), backstoretest.Size
					return openFile(t, c)
				}})
			})
		}
	}
}

func TestRAM(t *testing.T) {
	backstoretest.Run(t, backstoretest.Subject{Open: func(t *testing.T) backstore.Store {
		return must[backstore.Store](t)(backstore.NewRAM(backstoretest.Size, 0))
	}})
}

func TestNull(t *testing.T) {
	backstoretest.Run(t, backstoretest.Subject{Forgets: true, Open: func(t *testing.T) backstore.Store {
		return must[backstore.Store](t)(backstore.NewNull(backstoretest.Size, 0))
	}})
}

func newMem(t *testing.T, async bool) *memstore.Store {
	t.Helper()
	return must[*memstore.Store](t)(memstore.New(memstore.Config{Size: backstoretest.Size, Async: async}))
}

func TestMemstore(t *testing.T) {
	for name, async := range map[string]bool{"inline": false, "async": true} {
		t.Run(name, func(t *testing.T) {
			backstoretest.Run(t, backstoretest.Subject{Open: func(t *testing.T) backstore.Store { return newMem(t, async) }})
		})
	}
}

// TestErrstore runs through rules that delay but do not harm.
func TestErrstore(t *testing.T) {
	rules := []errstore.Rule{{Kinds: []backstore.Kind{backstore.Read}, Async: true}, {Len: 1 << 16, Delay: 1}}
	backstoretest.Run(t, backstoretest.Subject{Open: func(t *testing.T) backstore.Store {
		return errstore.Wrap(newMem(t, false), rules...)
	}})
}
