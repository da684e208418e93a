package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/scripts/evidence/daemon"
)

// members breaks mirrors, and volumes with writes in excess, by kills while they work and
// while they start, and takes their files away meanwhile.
type members struct {
	binary   string
	random   *rand.Rand
	dir      string
	server   *daemon.Server
	units    []*unit
	ordered  bool     // the last server has stopped in order, with both members
	without  []string // members that are away
	done     int
	commands int
	refused  int // starts for which data would have been missing
	copied   int // starts with a member that lacked all
	wrong    []string
}

// The mirrors are larger than what the load uses, so that copying takes a while.
const (
	mirrorSize = 12 << 20
	mirrorUsed = 1 << 20
)

const membersConfig = `
server: {threads: 2, buffers-per-thread: 4MiB, nop: {interval: 0s}, limits: {memory-per-session: 2MiB}}
portal-groups: {local: {listen: ["127.0.0.1:0"]}}
cache: {size: 16MiB, block-size: 64KiB, huge: off, segment: DIR/segment, dirty-limit: 2MiB}
volumes:
  plain: {type: mirror, members: [plain.a, plain.b], size: 12MiB, held: 8MiB, window: 20ms}
  cached: {type: mirror, members: [cached.a, cached.b], size: 12MiB, held: 8MiB, window: 20ms, write: back, cache: true}
  excess: {type: file, path: excess.img, size: 1MiB, excess: excess.fast, excess-size: 16MiB, excess-writes: 100}
targets:
  ` + targetName + `:
    luns:
      - {lun: 0, volume: plain}
      - {lun: 1, volume: cached}
      - {lun: 2, volume: excess}
`

// run does so many rounds, each of which begins with what the one before has left.
func (m *members) run(dir string, count int) (err error) {
	m.dir = filepath.Join(dir, "state")
	if m.server, err = daemon.New(m.binary, dir, membersConfig); err != nil {
		return err
	}
	for i, name := range []string{"plain", "cached", "excess"} {
		m.units = append(m.units, &unit{lun: uint64(i), name: name, lasting: true, plain: true, ledger: newLedger(i, mirrorUsed/blockSize)})
		if name == "excess" {
			continue
		}
		image := make([]byte, mirrorSize)
		for at := mirrorUsed; at < len(image); at++ {
			image[at] = byte(m.random.Uint32())
		}
		if err := os.WriteFile(filepath.Join(m.dir, name+".a"), image, 0o600); err != nil {
			return err
		}
	}
	for m.done < count && len(m.wrong) == 0 {
		if err := m.round(); err != nil {
			m.wrong = append(m.wrong, fmt.Sprintf("after kill %d: %v\n%s", m.done, err, m.server.Output.String()))
		}
		m.done++
	}
	if len(m.wrong) == 0 {
		if err := m.last(); err != nil {
			m.wrong = append(m.wrong, fmt.Sprintf("in the end: %v\n%s", err, m.server.Output.String()))
		}
	}
	return nil
}

// round changes what the next server finds, starts it, compares, works and kills it.
func (m *members) round() error {
	portal, err := m.begin()
	if err != nil {
		return err
	}
	if m.random.IntN(4) == 0 { // while members are copied
		time.Sleep(time.Duration(m.random.IntN(60)) * time.Millisecond)
		m.ordered = false
		return m.server.Kill(syscall.SIGKILL)
	}
	l, err := dial(portal, targetName, m.units, m.random)
	if err != nil {
		return errors.Join(err, m.server.Kill(syscall.SIGKILL))
	}
	defer l.conn.Close()
	if wrong, err := l.survey(); err != nil || len(wrong) > 0 {
		return errors.Join(append(wrong, err, m.server.Kill(syscall.SIGKILL))...)
	}
	return m.work(l)
}

// work sends commands until the server is killed under them, or stops in order after them.
func (m *members) work(l *load) error {
	until, killed := m.random.IntN(200), make(chan error, 1)
	m.ordered = m.random.IntN(3) == 0 && len(m.without) == 0
	shot := false
	err := l.run(func() bool {
		if l.ended >= until && !shot && !m.ordered {
			shot = true
			time.AfterFunc(time.Duration(m.random.IntN(2000))*time.Microsecond, func() { killed <- m.server.Kill(syscall.SIGKILL) })
		}
		return l.ended < until || shot
	})
	m.commands += l.ended
	if shot {
		if dead := <-killed; dead != nil || !errors.Is(err, errWrong) {
			err = dead
		}
		return err
	}
	if !m.ordered {
		return errors.Join(err, m.server.Kill(syscall.SIGKILL))
	}
	return errors.Join(err, m.alike(), m.server.Kill(syscall.SIGTERM))
}

// alike waits until the members of all mirrors are.
func (m *members) alike() error {
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, text := m.server.Lunar("status", "--socket", m.server.Socket())
		if strings.Count(text, "mirror led by") == 2 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("the members are not alike after 30s:\n%s", text)
		}
	}
}

// begin starts the server with what is there. It may refuse to serve what lacks data; with
// all that it had, it must not.
func (m *members) begin() (portal string, err error) {
	undo, must, err := m.meddle()
	if err != nil {
		return "", err
	}
	portal, err = m.server.Start()
	if err == nil || must {
		return portal, err
	}
	m.refused++
	if !strings.Contains(m.server.Output.String(), "volume ") {
		return "", fmt.Errorf("it does not say of which volume: %w", err)
	}
	if err := undo(); err != nil {
		return "", err
	}
	return m.server.Start()
}

// meddle changes what the next server finds. It returns what undoes that, and whether the
// server must start with it nevertheless.
func (m *members) meddle() (undo func() error, must bool, err error) {
	if len(m.without) > 0 && m.random.IntN(2) == 0 { // they come back
		back := m.without
		m.without = nil
		return nil, true, each(back, func(path string) error { return os.Rename(path+".away", path) })
	}
	if len(m.without) > 0 {
		return nil, true, nil
	}
	which := []string{".a", ".b"}[m.random.IntN(2)]
	paths := []string{filepath.Join(m.dir, "plain"+which), filepath.Join(m.dir, "cached"+which)}
	if _, err := os.Stat(paths[0]); err != nil { // the first server makes it
		return nil, true, nil
	}
	away := func() error { return each(paths, func(path string) error { return os.Rename(path, path+".away") }) }
	back := func() error { return each(paths, func(path string) error { return os.Rename(path+".away", path) }) }
	switch m.random.IntN(6) {
	case 0: // members are missing
		m.without = paths
		return func() error { m.without = nil; return back() }, m.ordered, away()
	case 1: // they are replaced
		m.copied++
		return back, m.ordered, errors.Join(away(), each(paths, fresh))
	case 2: // what is known of the fast device is lost
		notes, err := filepath.Glob(filepath.Join(m.dir, "excess", "*"))
		return nil, true, errors.Join(err, each(notes, os.Remove), os.RemoveAll(filepath.Join(m.dir, ".kept", "excess")))
	case 3: // the fast device is
		path := filepath.Join(m.dir, "excess.fast")
		return func() error { return os.Rename(path+".away", path) }, m.ordered, os.Rename(path, path+".away")
	}
	return nil, true, nil
}

// fresh makes the file of a new disk.
func fresh(path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, mirrorSize)
}

func each(paths []string, do func(string) error) (err error) {
	for _, path := range paths {
		err = errors.Join(err, do(path))
	}
	return err
}

// last has all members back, waits until they are alike, and compares them.
func (m *members) last() error {
	if err := each(m.without, func(path string) error { return os.Rename(path+".away", path) }); err != nil {
		return err
	}
	portal, err := m.server.Start()
	if err != nil {
		return err
	}
	l, err := dial(portal, targetName, m.units, m.random)
	if err != nil {
		return errors.Join(err, m.server.Kill(syscall.SIGKILL))
	}
	wrong, err := l.survey()
	l.conn.Close()
	if err := errors.Join(append(wrong, err, m.alike(), m.server.Kill(syscall.SIGTERM))...); err != nil {
		return err
	}
	for _, name := range []string{"plain", "cached"} {
		a, err := os.ReadFile(filepath.Join(m.dir, name+".a"))
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(m.dir, name+".b"))
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("the members of %s differ after a stop in order", name)
		}
	}
	return nil
}
