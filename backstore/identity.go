package backstore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Identity tells a file or block device from all others over restarts of the
// process and of the machine. It has neither device numbers, which change with
// every boot, nor sizes, which grow.
type Identity struct {
	// System is the file system of a file, see systemOf; empty where nothing lasts.
	System string `json:"system,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
	Birth  uint64 `json:"birth,omitempty"` // Unix time in ns; 0: the file system does not know
	// Device is what a block device is known by, see deviceIdentity.
	Device string `json:"device,omitempty"`
}

// String names the identity for messages.
func (i Identity) String() string {
	if i.Device != "" {
		return i.Device
	}
	system := i.System
	if system == "" {
		system = "a file system without identity"
	}
	return fmt.Sprintf("inode %d, born %d, on %s", i.Inode, i.Birth, system)
}

// Same reports whether both are the same file or device. File systems are
// compared when both are known in the same way: another kernel may tell more. So it
// may of births: where one is not known, the file system has to be the same.
func (i Identity) Same(o Identity) bool {
	if i.Device != "" || o.Device != "" {
		return i.Device == o.Device
	}
	mine, others := canonical(i.System), canonical(o.System)
	way := func(s string) string { w, _, _ := strings.Cut(s, " "); return w }
	if mine != others && way(mine) == way(others) || i.Inode != o.Inode {
		return false
	}
	known := i.Birth != 0 && o.Birth != 0
	return i.Birth == o.Birth || !known && mine == others && mine != ""
}

// canonical is a System as the kernel tells it where udev's link has a UUID, too: they
// are the same.
func canonical(system string) string {
	link, ok := strings.CutPrefix(system, "link ")
	hex := strings.ToLower(strings.ReplaceAll(link, "-", ""))
	if !ok || len(link) != len("01234567-89ab-cdef-0123-456789abcdef") || len(hex) != 32 {
		return system
	}
	return "uuid " + hex
}

// deviceBit is set in the first word of a device's medium.
const deviceBit = 1 << 63

// Medium is the identity as words of a Stamp.
func (i Identity) Medium() [3]uint64 {
	if i.Device != "" {
		return [3]uint64{digest(i.Device) | deviceBit}
	}
	return [3]uint64{digest(i.System) &^ deviceBit, i.Inode, i.Birth}
}

// key is the identity as an intent log has it. A file system that says when a file
// was born is left out, for another kernel may know it in another way.
func (i Identity) key() [2]uint64 {
	switch {
	case i.Device != "":
		return [2]uint64{digest(i.Device) | deviceBit, 0}
	case i.Birth == 0:
		return [2]uint64{i.Inode, digest(i.System)}
	}
	return [2]uint64{i.Inode, i.Birth}
}

// logName is the key as the name of an intent log. Where all kernels know the file system
// in one way, it is in there: files of a snapshot have the keys of their origins.
func (i Identity) logName() string {
	k := i.key()
	if i.Birth != 0 && strings.HasPrefix(i.System, ofStatfs) {
		k[1] ^= digest(i.System)
	}
	return fmt.Sprintf("%016x%016x.log", k[0], k[1])
}

// ofStatfs begins the System that all kernels tell alike.
const ofStatfs = "fsid "

func digest(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:])
}

// Found is what a look at a file or device tells without opening it as a Store.
type Found struct {
	Missing  bool
	Identity Identity
	Size     int64 // bytes
}

// Look looks at what is at path. It changes nothing and takes no lock.
func Look(path string) (Found, error) {
	fd, err := openRetry(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC)
	if err == unix.ENOENT {
		return Found{Missing: true}, nil
	}
	if err != nil {
		return Found{}, fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Found{}, fmt.Errorf("%s: %w", path, err)
	}
	size, err := unix.Seek(fd, 0, unix.SEEK_END)
	if err != nil {
		return Found{}, fmt.Errorf("size of %s: %w", path, err)
	}
	return Found{Identity: identify(fd, &st), Size: size}, nil
}

// identify tells what the descriptor is open on.
func identify(fd int, st *unix.Stat_t) Identity {
	if st.Mode&unix.S_IFMT == unix.S_IFBLK {
		return Identity{Device: deviceIdentity(sysBlock(st.Rdev), st.Rdev)}
	}
	return Identity{System: systemOf(fd, st), Inode: st.Ino, Birth: birthOf(fd)}
}

// getFSUUID is FS_IOC_GETFSUUID, _IOR(0x15, 0, struct fsuuid2), from Linux 6.9 on.
const getFSUUID = 0x80111500

// systemOf tells the file system of an open file. Ext4 and btrfs make the identifier of
// statfs(2) of the UUID, btrfs also of the subvolume: a snapshot has the inodes and times
// of birth of its origin. Others make it of the device number; newer kernels tell their
// UUID, else udev's links may know that of the device.
func systemOf(fd int, st *unix.Stat_t) string {
	var fs unix.Statfs_t
	if unix.Fstatfs(fd, &fs) == nil && fs.Fsid.Val != [2]int32{} && (fs.Type == unix.EXT4_SUPER_MAGIC || fs.Type == unix.BTRFS_SUPER_MAGIC) {
		return fmt.Sprintf(ofStatfs+"%08x%08x", uint32(fs.Fsid.Val[0]), uint32(fs.Fsid.Val[1]))
	}
	var u struct {
		length byte
		uuid   [16]byte
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), getFSUUID, uintptr(unsafe.Pointer(&u)))
	if errno == 0 && u.uuid != [16]byte{} {
		return fmt.Sprintf("uuid %x", u.uuid[:min(int(u.length), len(u.uuid))])
	}
	if name := linkTo("/dev/disk/by-uuid", st.Dev); name != "" {
		return "link " + name
	}
	return ""
}

// linkTo returns the first name in a directory of udev's that leads to a device.
func linkTo(dir string, dev uint64) string {
	entries, _ := os.ReadDir(dir) // none where there is no udev
	for _, e := range entries {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, e.Name()), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK && st.Rdev == dev {
			return e.Name()
		}
	}
	return ""
}

// sysBlock is a block device's directory in sysfs.
func sysBlock(dev uint64) string {
	return fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev))
}

// deviceIdentity is, by what there is first: the UUID of device mapper; the file
// behind a loop device and where it begins there; for a partition its disk and
// where it begins; the name in device mapper; a WWN or UUID of the disk; its serial number; the name that udev gives
// it in by-id. A device that has none of them is known by its kernel's name, which
// may be another's after a boot.
func deviceIdentity(dir string, dev uint64) string {
	attribute := func(name string) string {
		text, _ := os.ReadFile(dir + "/" + name) // empty where there is none; Join would take dir/.. for what is above the link
		return strings.TrimSpace(string(text))
	}
	if uuid := attribute("dm/uuid"); uuid != "" {
		return "device-mapper UUID " + uuid
	}
	if file := attribute("loop/backing_file"); file != "" {
		return fmt.Sprintf("loop device on %s, from byte %s", backing(file), attribute("loop/offset"))
	}
	if attribute("partition") != "" {
		return fmt.Sprintf("partition from sector %s of %s", attribute("start"), deviceIdentity(dir+"/..", 0))
	}
	for _, a := range []struct{ file, name string }{
		{"dm/name", "device-mapper name"},
		{"wwid", "WWN"}, {"uuid", "UUID"}, {"device/wwid", "WWN"}, {"md/uuid", "md UUID"},
		{"serial", "serial"}, {"device/serial", "serial"}, {"device/cid", "card"},
	} {
		if text := attribute(a.file); text != "" {
			return a.name + " " + text + areaOf(a.file, dir)
		}
	}
	if name := linkTo("/dev/disk/by-id", dev); dev != 0 && name != "" {
		return "by-id " + name
	}
	link, err := filepath.EvalSymlinks(dir)
	if err != nil {
		link = dir
	}
	return "kernel name " + filepath.Base(link)
}

// areaOf tells the boot and other areas of a memory card from its main one: they are
// devices of their own with one number of the card.
func areaOf(attribute, dir string) string {
	link, err := filepath.EvalSymlinks(dir)
	if attribute != "device/cid" || err != nil {
		return ""
	}
	area := strings.TrimLeft(strings.TrimPrefix(filepath.Base(link), "mmcblk"), "0123456789")
	if area == "" {
		return ""
	}
	return " " + area
}

// backing is the identity of the file behind a loop device, or its path when it is
// not there under that.
func backing(path string) string {
	found, err := Look(path)
	if err != nil || found.Missing {
		return path
	}
	return found.Identity.String()
}

// birthOf returns a time in nanoseconds, 0 if it is not known. A file that takes
// the place of another often gets its inode number.
func birthOf(fd int) uint64 {
	var sx unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &sx); err != nil || sx.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return uint64(sx.Btime.Sec)*1e9 + uint64(sx.Btime.Nsec)
}
