package kernelqtcp

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

//go:embed bpf/qtcp.bpf.o
var object []byte

// Name is the congestion control's in the kernel.
const Name = "lunar_qtcp"

// Directory is where it is pinned, in the file system of BPF.
const Directory = "/sys/fs/bpf/lunar"

// Shares is the pinned map that says what connections should get: a Share by socket.
const Shares = Directory + "/shares"

// control is the pinned map that is the congestion control.
const control = Directory + "/" + Name

// sharesName is the name of the map Shares.
const sharesName = "lunar_shares"

// Share is an entry of the map.
type Share struct {
	Target  uint64 // bytes per second; 0: not known
	DelayUS uint64 // beyond the shortest round trip, from which one counts as congested without ECN
	Weight  uint64 // of Whole: packets by which the window grows in a round trip; 0: not known
	Hold    uint64 // without ECN, the window is the least one until this is 0 again
}

// Whole is 1 where the kernel counts in fractions of that.
const Whole = 1024

// Map is what kind of map something is, as the kernel numbers and measures it.
type Map struct{ Type, Key, Value uint32 }

// SharesMap is the kind of the pinned map Shares.
var SharesMap = Map{Type: uint32(ebpf.SkStorage), Key: 4, Value: uint32(unsafe.Sizeof(Share{}))}

// Load loads and registers the congestion control, and pins it for the user with the
// given number to use. The error says what of that the kernel cannot do; then nothing is
// loaded.
func Load(uid, gid int) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s: it is loaded by root, found user %d", Name, os.Geteuid())
	}
	if _, err := os.Stat(control); err == nil {
		return fmt.Errorf("%s is loaded already: tgtd qtcp unload takes it away", Name)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	// Links of struct_ops came with 6.4. Without one it is registered by its value, in all.
	spec.Maps[Name].Flags &^= unix.BPF_F_LINK
	if err := mount(); err != nil {
		return err
	}
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		return fmt.Errorf("%s: the kernel does not take it (expected 6.0 or later with BTF and BPF struct_ops): %w", Name, err)
	}
	defer loaded.Close()
	if err := pin(loaded.Maps); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", Name, err), loaded.Maps[Name].Delete(uint32(0)))
	}
	if err := errors.Join(os.Chown(Shares, uid, gid), os.Chmod(Shares, 0o600), os.Chmod(Directory, 0o711)); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", Shares, err), Unload())
	}
	return nil
}

// mount has the file system of BPF where it belongs.
func mount() error {
	var fs unix.Statfs_t
	parent := filepath.Dir(Directory)
	if err := unix.Statfs(parent, &fs); err != nil {
		return fmt.Errorf("%s: %w", parent, err)
	}
	if fs.Type != unix.BPF_FS_MAGIC {
		if err := unix.Mount("bpf", parent, "bpf", 0, "mode=0711"); err != nil {
			return fmt.Errorf("mounting the file system of BPF at %s: %w", parent, err)
		}
	}
	if err := os.MkdirAll(Directory, 0o711); err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	return passable(parent)
}

// passable lets everybody through a directory to what they have a right to in it. systemd
// mounts the file system of BPF for root alone.
func passable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&0o001 != 0 {
		return err
	}
	return os.Chmod(dir, info.Mode()|0o011)
}

// pin pins both maps or none.
func pin(maps map[string]*ebpf.Map) error {
	if err := maps[sharesName].Pin(Shares); err != nil {
		return err
	}
	if err := maps[Name].Pin(control); err != nil {
		return errors.Join(err, os.Remove(Shares))
	}
	return nil
}

// Unload takes the congestion control from those who choose it from now on. Connections
// that have it keep it until they end. Where something else is pinned in its place, nothing
// is removed.
func Unload() error {
	ops, err := own(control, ebpf.StructOpsMap, Name)
	if err != nil {
		return err
	}
	shares, err := own(Shares, ebpf.SkStorage, sharesName)
	if err != nil {
		return errors.Join(err, ops.Close())
	}
	var errs []error
	if ops != nil {
		errs = append(errs, ops.Delete(uint32(0)))
	}
	errs = append(errs, ops.Close(), shares.Close()) // a map that is nil has nothing to close
	for _, path := range []string{control, Shares, Directory} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// own opens a pinned map of Load; nil: nothing is pinned there.
func own(path string, kind ebpf.MapType, name string) (*ebpf.Map, error) {
	m, err := ebpf.LoadPinnedMap(path, nil)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; nothing is removed", path, err)
	}
	info, err := m.Info()
	if err == nil && (info.Type != kind || info.Name != name) {
		err = fmt.Errorf("found a map %q of type %s, expected %q of type %s, which tgtd qtcp load pins", info.Name, info.Type, name, kind)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w; nothing is removed", path, err), m.Close())
	}
	return m, nil
}
