package gotgtstore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gostor/gotgt/pkg/api"
	"github.com/gostor/gotgt/pkg/scsi"
	_ "github.com/gostor/gotgt/pkg/scsi/backingstore" // registers the plug-in "file"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/gotgtstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func filePlugin(t *testing.T) api.BackingStore {
	t.Helper()
	plugin, err := scsi.NewBackingStore("file")
	if err != nil {
		t.Fatal(err)
	}
	return plugin
}

func emptyFile(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "volume")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilePlugin runs gotgt's own plug-in.
func TestFilePlugin(t *testing.T) {
	backstoretest.Run(t, backstoretest.Subject{Whole: true, Fixed: true, Open: func(t *testing.T) backstore.Store {
		s, err := gotgtstore.Open(filePlugin(t), emptyFile(t, backstoretest.Size), "")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}})
}

func TestOpenRefuses(t *testing.T) {
	for name, test := range map[string]struct{ path, want string }{
		"missing": {filepath.Join(t.TempDir(), "missing"), "open: stat"},
		"empty":   {emptyFile(t, 0), "size 0: expected a positive multiple of 512"},
		"odd":     {emptyFile(t, 1000), "size 1000: expected a positive multiple of 512"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gotgtstore.Open(filePlugin(t), test.path, "")
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) {
				t.Errorf("error %v, expected the path and %q in it", err, test.want)
			}
		})
	}
}

// fake is a plug-in that notes what is asked of it and fails as told.
type fake struct {
	api.BackingStore
	calls []string
	short bool
	err   error
}

func (f *fake) note(call string) error {
	f.calls = append(f.calls, call)
	return f.err
}

func (f *fake) Init(*api.SCSILu, string) error { return nil }
func (f *fake) Open(*api.SCSILu, string) error { return nil }
func (f *fake) Close(*api.SCSILu) error        { return f.note("close") }
func (f *fake) Exit(*api.SCSILu) error         { return f.note("exit") }
func (f *fake) Size(*api.SCSILu) uint64        { return 1 << 20 }
func (f *fake) Write(b []byte, _ int64) error  { return f.note("write") }
func (f *fake) DataSync(int64, int64) error    { return f.note("sync") }
func (f *fake) Read(_, n int64) ([]byte, error) {
	if f.short {
		n--
	}
	return make([]byte, n), f.note("read")
}

// TestCalls expects FUA to be followed by a sync, and errors to come through.
func TestCalls(t *testing.T) {
	data := make([]byte, 4096)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		plugin fake
		op     backstore.Op
		calls  string
		want   string // in the error; empty is none
	}{
		"write":        {fake{}, backstore.Op{Kind: backstore.Write, Data: data}, "write", ""},
		"fua":          {fake{}, backstore.Op{Kind: backstore.Write, FUA: true, Data: data}, "write sync", ""},
		"zeroes":       {fake{}, backstore.Op{Kind: backstore.WriteZeroes, FUA: true, Len: 300 << 10}, "write write sync", ""},
		"read":         {fake{}, backstore.Op{Kind: backstore.Read, FUA: true, Data: data}, "read", ""},
		"flush":        {fake{}, backstore.Op{Kind: backstore.Flush}, "sync", ""},
		"discard":      {fake{}, backstore.Op{Kind: backstore.Discard, Len: 4096}, "", "not supported"},
		"short read":   {fake{short: true}, backstore.Op{Kind: backstore.Read, Data: data}, "read", "read 4095 bytes, expected 4096"},
		"broken read":  {fake{err: broken}, backstore.Op{Kind: backstore.Read, Data: data}, "read", "broken"},
		"full":         {fake{err: &os.PathError{Op: "write", Path: "x", Err: unix.ENOSPC}}, backstore.Op{Kind: backstore.WriteZeroes, Len: 4096}, "write", backstore.ErrNoSpace.Error()},
		"broken write": {fake{err: broken}, backstore.Op{Kind: backstore.Write, FUA: true, Data: data}, "write", "broken"},
		"broken zero":  {fake{err: broken}, backstore.Op{Kind: backstore.WriteZeroes, Len: 4096}, "write", "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := gotgtstore.Open(&test.plugin, "fake", "")
			if err != nil {
				t.Fatal(err)
			}
			c := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
			err = c.Do(test.op)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, expected %q", err, test.want)
			}
			if got := strings.Join(test.plugin.calls, " "); got != test.calls {
				t.Errorf("calls %q, expected %q", got, test.calls)
			}
		})
	}
}

func TestCloseTellsThePlugin(t *testing.T) {
	plugin := &fake{err: errors.New("broken")}
	s, err := gotgtstore.Open(plugin, "fake", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); !errors.Is(err, plugin.err) || strings.Join(plugin.calls, " ") != "close exit" {
		t.Errorf("close: %v after %v, expected both calls and their error", err, plugin.calls)
	}
	if !strings.Contains(s.Info().Describe, "fake") {
		t.Error("the description does not name the path")
	}
}
