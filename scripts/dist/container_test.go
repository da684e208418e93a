package dist

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"lunar/internal/eventually"
	"lunar/internal/freeport"
	"lunar/internal/initiator"
)

// untar writes the directories and files of an archive.
func untar(t *testing.T, from io.Reader, to string) {
	t.Helper()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			var text []byte
			if text, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, text, 0o600)
			}
		}
		if err == nil {
			err = errors.Join(os.Chmod(path, os.FileMode(h.Mode)), os.Lchown(path, h.Uid, h.Gid))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// container is what a runtime makes of the image: its files, its user and its command, in
// namespaces of its own, with a /dev/shm of its own as runtimes give it.
type container struct {
	root, portal string
	config       *v1.ConfigFile
	shared       string // directory of the machine that is at /dev/shm/lunar; empty: none
	cmd          *exec.Cmd
	log          eventually.Output
}

const containerScript = `set -e
mount --make-rprivate /
root=$1 shared=$2 user=$3
shift 3
mkdir -p "$root/dev/shm" "$root/proc"
mount -t tmpfs -o mode=1777,size=65536k shm "$root/dev/shm"
mount -t proc proc "$root/proc"
if [ -n "$shared" ]; then
	mkdir "$root/dev/shm/lunar"
	mount --bind "$shared" "$root/dev/shm/lunar"
fi
exec chroot --userspec="$user" "$root" "$@"`

// newContainer unpacks the image, with a volume that writes back.
func newContainer(t *testing.T) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make namespaces and mounts as a container runtime does")
	}
	archives, _ := filepath.Glob(distFiles(t) + "/*.oci.tar")
	archive, err := os.Open(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	dir := t.TempDir()
	untar(t, archive, dir)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("found %+v, %v, expected an image for %s", manifest, err, runtime.GOARCH)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	c := &container{root: t.TempDir()}
	if c.config, err = image.ConfigFile(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.root, 0o755); err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	untar(t, files, c.root)
	if c.portal, err = freeport.Loopback(); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("portal-groups: {p: {listen: [%q]}}\ncache: {size: 16MiB}\nvolumes: {v: {type: file, path: disk.img, size: 8MiB, write: back, cache: {flush-age: 1h}}}\n"+
		"targets: {\"iqn.2026-11.test:t\": {auth-group: none, luns: {0: v}}}\n", c.portal)
	if err := os.WriteFile(filepath.Join(c.root, "etc/lunar/tgtd.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return c
}

// run begins a new container with the files of the one before.
func (c *container) run(t *testing.T) {
	t.Helper()
	args := append([]string{"-c", containerScript, "sh", c.root, c.shared, c.config.Config.User},
		append(c.config.Config.Entrypoint, c.config.Config.Cmd...)...)
	c.cmd = exec.Command("sh", args...)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = append(c.config.Config.Env, "PATH="+os.Getenv("PATH")), &c.log, &c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.kill() })
}

// kill ends the container at once, as "docker kill" does.
func (c *container) kill() {
	if c.cmd != nil {
		c.cmd.Process.Kill()
		_ = c.cmd.Wait() // it was killed
		c.cmd = nil
	}
}

func (c *container) dial(t *testing.T) *initiator.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var conn *initiator.Conn
	eventually.Holds(t, "the login", func() (ok bool) {
		var err error
		conn, err = initiator.Dial(ctx, c.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	if err := conn.Ready(0); err != nil {
		t.Fatal(err)
	}
	return conn
}

// first reads or writes the first 4 KiB of the volume.
func first(t *testing.T, c *initiator.Conn, write []byte) []byte {
	t.Helper()
	op, in := byte(0x28), 4096
	if write != nil {
		op, in = 0x2a, 0
	}
	r, err := c.Command([]byte{op, 0, 0, 0, 0, 0, 0, 0, 8, 0}, 0, write, in)
	if err != nil || r.Status != 0 {
		t.Fatalf("opcode %#x: %+v, %v", op, r, err)
	}
	return r.In
}

const ownMemory = "memory that a container has for itself"

// TestSegmentOfContainers: acknowledged data that no volume has yet are there in the next
// container if the cache lies in memory that both share. Else the server says at the start
// that they will not be, and the next one that they are gone.
func TestSegmentOfContainers(t *testing.T) {
	data := bytes.Repeat([]byte("lunar..."), 512)
	t.Run("shared", func(t *testing.T) {
		c := newContainer(t)
		var err error
		if c.shared, err = os.MkdirTemp("/dev/shm", "lunar-dist"); err != nil {
			t.Skipf("no shared memory: %v", err)
		}
		t.Cleanup(func() { os.RemoveAll(c.shared) })
		if err := os.Chown(c.shared, 3260, 3260); err != nil {
			t.Fatal(err)
		}
		c.run(t)
		first(t, c.dial(t), data)
		c.kill()
		if file, err := os.ReadFile(filepath.Join(c.root, "var/lib/lunar/disk.img")); err != nil || bytes.Contains(file, data) {
			t.Fatalf("found the data in the file (%v), expected them in the cache alone", err)
		}
		c.run(t)
		if got := first(t, c.dial(t), nil); !bytes.Equal(got, data) {
			t.Errorf("found %.16q, expected what was written", got)
		}
		if strings.Contains(c.log.String(), ownMemory) {
			t.Errorf("found a warning for memory that is shared:\n%s", &c.log)
		}
	})
	t.Run("its own", func(t *testing.T) {
		c := newContainer(t)
		c.run(t)
		first(t, c.dial(t), data)
		eventually.Says(t, c.log.String, ownMemory)
		c.kill()
		c.run(t)
		eventually.Says(t, c.log.String, "the cache segment of the last run, which did not end in order, is gone")
	})
}
