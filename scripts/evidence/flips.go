package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"lunar/scripts/evidence/daemon"
)

// flipsConfig has everything of which something is kept.
const flipsConfig = `
server: {threads: 1, buffers-per-thread: 4MiB, poll: "off", nop: {interval: 0s}, limits: {memory-per-session: 2MiB}}
portal-groups: {local: {listen: ["127.0.0.1:0"]}}
cache: {size: 16MiB, block-size: 64KiB, huge: off, segment: DIR/segment, dirty-limit: 4MiB CHECKSUM}
volumes:
  plain: {type: file, path: plain.img, size: 1MiB, write: back, cache: {flush-age: 1h}}
  protected: {type: file, path: protected.img, size: 1MiB, write: back, protection: 1, cache: true}
  encrypted: {type: file, path: encrypted.img, size: 1MiB, encryption: {key-file: DIR/key}}
  through: {type: file, path: through.img, size: 1MiB, protection: 1}
targets:
  iqn.2026-11.example.lunar:evidence:
    luns: [{lun: 0, volume: plain}, {lun: 1, volume: protected}, {lun: 2, volume: encrypted}, {lun: 3, volume: through}]
`

func flipsUnits() (units []*unit) {
	for i, name := range []string{"plain", "protected", "encrypted", "through"} {
		units = append(units, &unit{lun: uint64(i), name: name, lasting: true, ledger: newLedger(i, 1<<20/blockSize)})
	}
	return units
}

// Files in which a changed bit is the medium's business: volumes without protection
// information; and those with it after a kill, when what was being written may be damaged
// and is looked at by other means.
var (
	unguarded = regexp.MustCompile(`(plain|encrypted)\.img$`)
	guarded   = regexp.MustCompile(`\.img(\.pi)?$`)
)

// verdict is what came of a flipped bit.
type verdict int

// The last three must not be.
const (
	refused    verdict = iota // at the start, by a message that names the file
	unreadable                // blocks are refused when they are read
	harmless                  // everything is as it was
	unnamed                   // refused by a message that does not name the file
	silent                    // something is different, and nobody said so
	lingering                 // something is different when the bit is back
	verdicts
)

var verdictNames = [verdicts]string{"refused", "unreadable", "harmless", "refused without its name", "silent", "wrong when it was back"}

// flips counts verdicts by part of what is kept.
type flips struct {
	binary string
	random *rand.Rand
	counts map[string]*[verdicts]int
	wrong  []string

	done     int
	last     spot // none after reset
	server   *daemon.Server
	units    []*unit
	told     string // by witness
	checksum bool   // cache.checksum is on
	orderly  bool   // the server was stopped, not killed
}

func newFlips(binary string, random *rand.Rand) *flips {
	return &flips{binary: binary, random: random, counts: map[string]*[verdicts]int{}}
}

// reset begins with new volumes.
func (f *flips) reset(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(f.random.Uint32())
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), key, 0o600); err != nil {
		return err
	}
	checksum := ""
	if f.checksum = accepts(f.binary, dir, "cache: {size: 16MiB, segment: DIR/segment, checksum: true}"); f.checksum {
		checksum = ", checksum: true"
	}
	var err error
	f.server, err = daemon.New(f.binary, dir, strings.ReplaceAll(flipsConfig, " CHECKSUM", checksum))
	f.units, f.told, f.last = flipsUnits(), "", spot{}
	return err
}

// run flips so many bits, in turn in all parts of what is kept.
func (f *flips) run(dir string, count int) error {
	if err := f.reset(dir); err != nil {
		return err
	}
	for f.done < count {
		if err := f.work(f.random.IntN(2) == 0); err != nil && f.last.part == "" {
			return err
		} else if err != nil {
			f.count(f.last, lingering, err.Error())
			if err := f.reset(dir); err != nil {
				return err
			}
			continue
		}
		parts, err := f.parts()
		if err != nil {
			return err
		}
		s := parts[f.done%len(parts)].draw(f.random)
		v, what, err := f.flip(s)
		if err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		f.done++
		f.last = s
		f.count(s, v, what)
		if v >= unnamed {
			if err := f.reset(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// count notes what came of a bit.
func (f *flips) count(s spot, v verdict, what string) {
	if f.counts[s.part] == nil {
		f.counts[s.part] = &[verdicts]int{}
	}
	f.counts[s.part][v]++
	if v >= unnamed {
		f.wrong = append(f.wrong, fmt.Sprintf("%v: %s: %s\n%s", s, verdictNames[v], what, f.server.Output.String()))
	}
}

// work serves the volumes for a while, and leaves what a server leaves that was killed, or
// stopped in order.
func (f *flips) work(orderly bool) error {
	portal, err := f.server.Start()
	if err != nil {
		return err
	}
	f.orderly = orderly
	err = f.serve(portal)
	return errors.Join(err, f.server.Kill(f.signal()))
}

func (f *flips) serve(portal string) error {
	l, err := dial(portal, targetName, f.units, f.random)
	if err != nil {
		return err
	}
	defer l.conn.Close()
	if wrong, err := l.survey(); err != nil || len(wrong) > 0 {
		return errors.Join(append(wrong, err)...)
	}
	if f.told == "" {
		if err := l.fence(f.units[0]); err != nil {
			return err
		}
		if f.told, err = l.witness(); err != nil {
			return err
		}
	}
	return l.run(func() bool { return l.ended < 40 })
}

// part is where bits are flipped.
type part struct {
	name       string
	path       string
	start, end int64
}

// spot is one bit.
type spot struct {
	part string
	path string
	at   int64
	bit  byte
}

func (s spot) String() string {
	return fmt.Sprintf("%s: bit %d of byte %d of %s", s.part, s.bit, s.at, s.path)
}

// draw prefers bytes that say something.
func (p part) draw(random *rand.Rand) spot {
	s := spot{part: p.name, path: p.path, bit: byte(random.IntN(8))}
	text, _ := os.ReadFile(p.path)
	for range 200 {
		s.at = p.start + random.Int64N(p.end-p.start)
		if s.at < int64(len(text)) && text[s.at] != 0 {
			break
		}
	}
	return s
}

// parts are those of all files that the server has left.
func (f *flips) parts() (parts []part, err error) {
	err = filepath.WalkDir(f.server.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || unguarded.MatchString(path) || guarded.MatchString(path) && !f.orderly || filepath.Dir(path) == f.server.Dir {
			return err
		}
		info, err := e.Info()
		if err != nil || info.Size() == 0 {
			return err
		}
		if filepath.Base(filepath.Dir(path)) == "segment" {
			parts = append(parts, segmentParts(path, info.Size())...)
			return nil
		}
		parts = append(parts, part{kind(path), path, 0, info.Size()})
		return nil
	})
	return parts, err
}

var serial = regexp.MustCompile(`[0-9a-f]{16,}`)

// kind is a file's name without what differs between servers.
func kind(path string) string {
	return serial.ReplaceAllString(filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)), "ID")
}

// segmentParts reads the layout that package cache/segment documents by itself. A segment
// that it cannot read is one part.
func segmentParts(path string, size int64) []part {
	head, err := os.ReadFile(path)
	if err != nil || len(head) < 8192 {
		return []part{{"segment", path, 0, size}}
	}
	word := func(at int) int64 { return int64(binary.LittleEndian.Uint64(head[at*8:])) }
	const slots, count, areas, areaWords = 3, 7, 48, 6
	parts := []part{
		{"segment: header", path, 0, 4096}, {"segment: state", path, 4096, 8192},
		{"segment: journal", path, 8192, 8192 + word(slots)*64},
	}
	for i := range int(word(count)) {
		at := areas + i*areaWords
		name := strings.TrimRight(string(head[at*8:(at+4)*8]), "\x00")
		p := part{"segment: " + name, path, word(at + 4), word(at+4) + word(at+5)}
		if p.start < 8192 || p.end > size || p.start >= p.end {
			return []part{{"segment", path, 0, size}}
		}
		parts = append(parts, p)
	}
	return parts
}

// turn changes the bit in place, and returns the byte that it has now.
func (s spot) turn() (byte, error) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], s.at); err != nil {
		return 0, err
	}
	b[0] ^= 1 << s.bit
	_, err = f.WriteAt(b[:], s.at)
	return b[0], err
}

// turnBack undoes it if nobody has written there since.
func (s spot) turnBack(flipped byte) error {
	text, err := os.ReadFile(s.path)
	if err != nil || int64(len(text)) <= s.at || text[s.at] != flipped {
		return nil // it was replaced, or removed
	}
	_, err = s.turn()
	return err
}

// flip judges what comes of one bit.
func (f *flips) flip(s spot) (v verdict, what string, err error) {
	flipped, err := s.turn()
	if err != nil {
		return 0, "", err
	}
	portal, err := f.server.Start()
	switch {
	case errors.Is(err, daemon.ErrEnded):
		v = refused
		if !strings.Contains(f.server.Output.String(), filepath.Base(s.path)) {
			v = unnamed
		}
		return v, "", s.turnBack(flipped)
	case err != nil:
		return 0, "", err
	}
	v, what = f.judge(portal)
	if err := f.server.Kill(f.signal()); err != nil {
		return 0, "", err
	}
	if v == harmless { // the server may have made a checksum of it
		return v, what, nil
	}
	return v, what, s.turnBack(flipped)
}

// signal is how servers end now.
func (f *flips) signal() syscall.Signal {
	if f.orderly {
		return syscall.SIGTERM
	}
	return syscall.SIGKILL
}

// judge compares what is served with what was there.
func (f *flips) judge(portal string) (verdict, string) {
	l, err := dial(portal, targetName, f.units, f.random)
	if err != nil {
		return silent, err.Error()
	}
	defer l.conn.Close()
	told, err := l.witness()
	if err != nil || told != f.told {
		return silent, fmt.Sprintf("%v; found\n%sexpected\n%s", err, told, f.told)
	}
	if err := trespass(portal, f.units[0]); err != nil {
		return silent, err.Error()
	}
	wrong, err := l.inspect()
	if err != nil {
		return silent, err.Error()
	}
	v := harmless
	for _, e := range wrong {
		if !errors.Is(e, errUnreadable) {
			return silent, e.Error()
		}
		v = unreadable
	}
	return v, ""
}

// accepts asks the binary whether it knows a configuration.
func accepts(binary, dir, config string) bool {
	s, err := daemon.New(binary, filepath.Join(dir, "probe"), config)
	if err != nil {
		return false
	}
	defer os.RemoveAll(s.Dir)
	code, _ := s.Command("check", s.Config)
	return code == 0
}

// broken counts what must not be. Block data without cache.checksum are not promised.
func (f *flips) broken() (n int) {
	for name, counts := range f.counts {
		if f.checksum || !strings.HasPrefix(name, "segment: data") {
			n += counts[unnamed] + counts[silent] + counts[lingering]
		}
	}
	return n
}

// table says what came of the bits in each part.
func (f *flips) table() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| what | bits | %s |\n|---|--:%s|\n", strings.Join(verdictNames[:], " | "), strings.Repeat("|--:", int(verdicts)))
	for _, name := range slices.Sorted(maps.Keys(f.counts)) {
		sum, row := 0, ""
		for _, n := range f.counts[name] {
			sum += n
			row += fmt.Sprintf(" | %d", n)
		}
		if strings.HasPrefix(name, "segment: data") && !f.checksum {
			name += " (without `cache.checksum`)"
		}
		fmt.Fprintf(&text, "| %s | %d%s |\n", name, sum, row)
	}
	return text.String()
}
