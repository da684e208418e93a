package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/powerfs"
)

// cutsConfig has a volume for each write policy, plain and protected or encrypted, two
// behind a driver of gotgt, two mirrors and two with writes in excess. All that is kept is in the state directory, and the cache's segment in shared memory, which
// a loss of power takes.
const cutsConfig = `
server: {threads: 1, buffers-per-thread: 4MiB, poll: "off", nop: {interval: 0s}, limits: {memory-per-session: 2MiB}}
portal-groups: {local: {listen: ["127.0.0.1:0"]}}
cache: {size: 16MiB, block-size: 64KiB, huge: off, segment: DIR/segment, dirty-limit: 2MiB}
volumes:
  back: {type: file, path: back.img, size: 1MiB, write: back, cache: {flush-age: 100ms}}
  back-protected: {type: file, path: back-protected.img, size: 1MiB, write: back, protection: 1, cache: true}
  through: {type: file, path: through.img, size: 1MiB}
  through-encrypted: {type: file, path: through-encrypted.img, size: 1MiB, encryption: {key-file: DIR/key}, cache: true}
  sync: {type: file, path: sync.img, size: 1MiB, write: sync}
  sync-protected: {type: file, path: sync-protected.img, size: 1MiB, write: sync, protection: 1}
  gotgt: {type: gotgt, driver: file, path: gotgt.img}
  gotgt-back: {type: gotgt, driver: file, path: gotgt-back.img, write: back, cache: {flush-age: 100ms}}
  mirror: {type: mirror, members: [m.a, m.b], size: 1MiB, held: 8MiB, window: 20ms, write: back, cache: {flush-age: 100ms}}
  sync-mirror: {type: mirror, members: [sm.a, sm.b], size: 1MiB, held: 8MiB, window: 20ms, write: sync}
  excess: {type: file, path: excess.img, size: 1MiB, excess: excess.fast, excess-size: 16MiB, excess-writes: 100, write: back, cache: {flush-age: 100ms}}
  sync-excess: {type: file, path: sync-excess.img, size: 1MiB, excess: sync-excess.fast, excess-size: 16MiB, excess-writes: 100, write: sync}
targets:
  iqn.2026-11.example.lunar:evidence:
    luns:
      - {lun: 0, volume: back}
      - {lun: 1, volume: back-protected}
      - {lun: 2, volume: through}
      - {lun: 3, volume: through-encrypted}
      - {lun: 4, volume: sync}
      - {lun: 5, volume: sync-protected}
      - {lun: 6, volume: gotgt}
      - {lun: 7, volume: gotgt-back}
      - {lun: 8, volume: mirror}
      - {lun: 9, volume: sync-mirror}
      - {lun: 10, volume: excess}
      - {lun: 11, volume: sync-excess}
`

const cutsSize = 1 << 20

func cutsUnits() (units []*unit) {
	for i, name := range []string{"back", "back-protected", "through", "through-encrypted", "sync", "sync-protected", "gotgt", "gotgt-back", "mirror", "sync-mirror", "excess", "sync-excess"} {
		units = append(units, &unit{
			lun: uint64(i), name: name, lasting: strings.HasPrefix(name, "sync"), driven: strings.HasPrefix(name, "gotgt"),
			plain:  strings.HasSuffix(name, "mirror") || strings.HasSuffix(name, "excess"),
			ledger: newLedger(i, cutsSize/blockSize),
		})
	}
	return units
}

// drivenFiles makes the files of drivers, which must be there.
func drivenFiles(state string, units []*unit) error {
	for _, u := range units {
		if !u.driven {
			continue
		}
		f, err := os.OpenFile(filepath.Join(state, u.name+".img"), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Truncate(cutsSize), f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	d, err := os.Open(state)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// medium is what the power is taken from, and what shows it as a file system.
type medium interface {
	// Mount shows the disk at a directory.
	Mount(disk *powerfs.Disk, dir string) error
	// Unmount leaves the directory, with the power off and the server gone.
	Unmount() error
	// Repaired is what Mount had to repair, in the words of the program that did.
	Repaired() string
}

// cuts takes the power away from a server again and again.
type cuts struct {
	binary   string
	random   *rand.Rand
	disk     *powerfs.Disk
	medium   medium
	without  string // kinds of commands
	done     int
	starting int // of them while the server started
	commands int // that were acknowledged
	wrong    []string
}

// run does so many cuts, below dir, which is in memory. The first thing that is wrong ends
// it: all others could follow from it.
func (c *cuts) run(dir string, count int) error {
	state := filepath.Join(dir, "state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		return err
	}
	s, err := daemon.New(c.binary, dir, cutsConfig)
	if err != nil {
		return err
	}
	p := &powered{cuts: c, Server: s, units: cutsUnits(), fenced: map[*unit]bool{}}
	for c.done < count && len(c.wrong) == 0 {
		if err := c.medium.Mount(c.disk, state); err != nil {
			return err
		}
		if c.done == 0 {
			if err := drivenFiles(state, p.units); err != nil {
				return err
			}
		}
		err := p.session()
		if err != nil && !c.disk.Down() {
			c.wrong = append(c.wrong, fmt.Sprintf("after cut %d: %v\n%s%s", c.done, err, s.Output.String(), c.medium.Repaired()))
		}
		c.disk = c.disk.Cut(powerfs.Loss(c.random.IntN(2)), c.random)
		c.done++
		p.stop()
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, "segment")), c.medium.Unmount()); err != nil {
			return err
		}
	}
	return nil
}

// powered is a server while the power is on.
type powered struct {
	*cuts
	*daemon.Server
	units  []*unit
	fenced map[*unit]bool // it was acknowledged
}

// session starts the server, compares, and works until the power goes, at some change of the
// medium or after some commands.
func (p *powered) session() error {
	p.disk.Limit(8 << p.random.IntN(12))
	if err := p.Launch(false); err != nil {
		return err
	}
	portal, err := p.Server.Ready()
	if err != nil {
		p.starting++
		return err
	}
	l, err := dial(portal, targetName, p.units, p.random)
	if err != nil {
		return err
	}
	defer l.conn.Close()
	l.without = p.without
	defer func() { p.commands += l.ended }()
	if wrong, err := l.survey(); err != nil || len(wrong) > 0 {
		return errors.Join(append(wrong, err)...)
	}
	if err := p.reservations(portal, l); err != nil {
		return err
	}
	until := p.random.IntN(300)
	return l.run(func() bool { return l.ended < until })
}

// stop is the end of the machine.
func (p *powered) stop() {
	p.Process.Kill()
	p.Process.Wait()
}

// reservations: what was acknowledged is there, and one unit more is fenced.
func (p *powered) reservations(portal string, l *load) error {
	for u := range p.fenced {
		if err := trespass(portal, u); err != nil {
			return fmt.Errorf("after a loss of power: %w", err)
		}
	}
	u := p.units[p.random.IntN(len(p.units))]
	if p.fenced[u] {
		return nil
	}
	if err := l.fence(u); err != nil {
		return err
	}
	p.fenced[u] = true
	return nil
}

// onFUSE shows the disk itself.
type onFUSE struct{ unmount func() error }

func (m *onFUSE) Mount(disk *powerfs.Disk, dir string) (err error) {
	m.unmount, err = powerfs.Mount(disk, dir)
	return err
}

func (m *onFUSE) Unmount() error { return m.unmount() }

// Repaired implements medium: there is nothing that could be damaged.
func (m *onFUSE) Repaired() string { return "" }

// onExt4 shows an ext4, whose image is a file on the disk.
type onExt4 struct {
	below    string // where the disk is mounted
	dir      string
	repaired string // by the last Mount
	onFUSE
}

// Repaired implements medium.
func (m *onExt4) Repaired() string { return m.repaired }

const imageName = "image"

// journalled formats a disk as everybody does.
func journalled(below string) (medium, *powerfs.Disk, error) { return newExt4(below, "has_journal") }

// unjournalled formats a disk without the journal that makes up for much that was not
// synced. Each inode has a block of its own: fsync of one file would write the inodes of
// its neighbours too, perhaps without a block of indirect blocks or extents that one of
// them has just got. What an earlier file has left in that block is then read as block
// numbers, and repair removes the file, whatever the server has synced.
func unjournalled(below string) (medium, *powerfs.Disk, error) {
	return newExt4(below, "^has_journal,^extent,^64bit", "-I", "4096", "-N", "512")
}

func newExt4(below, features string, options ...string) (medium, *powerfs.Disk, error) {
	if err := os.MkdirAll(below, 0o700); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(below, imageName)
	options = append(options, "-q", "-b", "4096", "-O", features, path, "32M")
	if err := tool("mkfs.ext4", options...); err != nil {
		return nil, nil, err
	}
	image, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	disk := powerfs.NewDisk()
	disk.Add(imageName, image)
	return &onExt4{below: below}, disk, os.Remove(path)
}

// Mount repairs the file system first, as a boot does.
func (m *onExt4) Mount(disk *powerfs.Disk, dir string) error {
	if err := m.onFUSE.Mount(disk, m.below); err != nil {
		return err
	}
	m.dir = dir
	image := filepath.Join(m.below, imageName)
	const corrected = 1
	said, err := output("e2fsck", "-fy", image)
	m.repaired = said
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() <= corrected {
		err = nil
	}
	if err != nil {
		return err
	}
	return tool("mount", "-o", "loop", image, dir)
}

// Unmount detaches: the killed server's last requests may still be in the kernel.
func (m *onExt4) Unmount() error {
	return errors.Join(tool("umount", "--lazy", m.dir), m.onFUSE.Unmount())
}

// tool runs a program of the system.
func tool(name string, args ...string) error {
	_, err := output(name, args...)
	return err
}

// output is tool, with what the program said.
func output(name string, args ...string) (string, error) {
	said, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said), err
}
