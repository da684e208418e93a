package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"lunar/conf"
)

// checkPaths opens what volumes are on, for reading, and looks whether what is not
// there yet can be made. It makes, changes and locks nothing. Paths are resolved.
// dir is the state directory, which the server makes itself.
func checkPaths(cfg *conf.Config, dir string) error {
	var errs []error
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		if v.Path == "" {
			errs = append(errs, checkMirror(v, dir))
			continue
		}
		err := checkStore(v, dir)
		if v.Excess != "" && err == nil {
			err = checkBeside(v.Excess, false, dir)
		}
		if v.Protection != 0 && err == nil {
			err = checkBeside(v.ProtectionFile, v.ReadOnly, dir)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %w", v.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkStore checks a volume's file or device.
func checkStore(v *conf.Volume, dir string) error {
	info, err := os.Stat(v.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && v.Type == conf.FileVolume && v.Size > 0 && !v.ReadOnly:
		return checkParent(v.Path, dir)
	case errors.Is(err, fs.ErrNotExist) && v.Type == conf.FileVolume:
		return fmt.Errorf("%w; without a size, or with read-only, the file has to be there", err)
	case errors.Is(err, fs.ErrNotExist) && v.Type == conf.GotgtVolume:
		return fmt.Errorf("%w; gotgt's driver makes none", err)
	case err != nil:
		return err
	case v.Type != conf.BlockVolume && !info.Mode().IsRegular():
		return fmt.Errorf("%s: found %v, expected a regular file (type block is for devices)", v.Path, info.Mode().Type())
	case v.Type == conf.BlockVolume && info.Mode().Type() != fs.ModeDevice:
		return fmt.Errorf("%s: found no block device, expected one (type file is for files)", v.Path)
	}
	return checkOpen(v.Path, v.ReadOnly && v.Type != conf.GotgtVolume) // whose drivers open for writing in any case
}

// checkMirror checks the members and the map of a mirror. One member may be missing.
func checkMirror(v *conf.Volume, dir string) error {
	if v.Type != conf.MirrorVolume {
		return nil
	}
	var missing []error
	for _, path := range v.Members {
		_, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && v.Size == 0:
		case errors.Is(err, fs.ErrNotExist):
			err = checkParent(path, dir)
		case err == nil:
			err = checkOpen(path, false)
		}
		if err != nil {
			missing = append(missing, err)
		}
	}
	err := checkBeside(v.Map, false, dir)
	if len(missing) == len(v.Members) {
		err = errors.Join(append(missing, err)...)
	}
	if err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	return nil
}

// checkBeside checks a file that is made when it is missing.
func checkBeside(path string, readOnly bool, dir string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return checkParent(path, dir)
	}
	return checkOpen(path, readOnly)
}

// checkOpen opens for reading, and asks whether writing would be allowed: a device
// that is opened for writing announces a change when it is closed.
func checkOpen(path string, readOnly bool) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if readOnly {
		return nil
	}
	return allowed(path, unix.W_OK)
}

// checkParent checks that a file can be made.
func checkParent(path, dir string) error {
	parent := filepath.Dir(path)
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist) && parent == dir:
		return nil
	case err != nil:
		return fmt.Errorf("%s cannot be made: %w", path, err)
	case !info.IsDir():
		return fmt.Errorf("%s cannot be made: found a file at %s, expected a directory", path, parent)
	}
	return allowed(parent, unix.W_OK|unix.X_OK)
}

func allowed(path string, mode uint32) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// checkAddresses tells of portals at addresses that this machine has not now. They
// are not bound: a server may run here.
func checkAddresses(cfg *conf.Config) (notes []string) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	has := func(a netip.Addr) bool {
		return a.IsUnspecified() || a.IsLoopback() || slices.ContainsFunc(own, func(o net.Addr) bool {
			n, ok := o.(*net.IPNet)
			return ok && n.IP.Equal(a.AsSlice())
		})
	}
	for i := range cfg.PortalGroups {
		g := &cfg.PortalGroups[i]
		for _, p := range g.Listen {
			if !has(p.Addr()) {
				notes = append(notes, fmt.Sprintf("portal-groups.%s.listen: found %v, which no network interface of this machine has now", g.Name, p))
			}
		}
	}
	return append(notes, checkLinks(cfg)...)
}

// checkLinks notes rates of network devices that are not there: they hold for none.
func checkLinks(cfg *conf.Config) (notes []string) {
	devices, err := net.Interfaces()
	if err != nil {
		return nil
	}
	names := []string{}
	for i := range devices {
		names = append(names, devices[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.QoS.Network.Links)) {
		if slices.Contains(names, name) {
			continue
		}
		note := fmt.Sprintf("qos.network.links: found %s, which is no network device of this machine now", name)
		if meant, ok := conf.Similar(name, names); ok {
			note += "; did you mean " + meant + "?"
		}
		notes = append(notes, note)
	}
	return notes
}
