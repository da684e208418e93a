package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/daemon"
)

// memoryOfCheck bounds what a check, or a start, of a small file may take, in KiB.
const memoryOfCheck = 512 << 10

// fuzzConfig has configurations checked.
func fuzzConfig(s *scene) sender {
	var files atomic.Int64
	return func(ctx context.Context, r *rand.Rand) (string, error) {
		file := filepath.Join(s.Scratch, fmt.Sprintf("fuzz-%p-%d.yaml", &files, files.Add(1)))
		defer os.Remove(file)
		if err := os.WriteFile(file, []byte(configuration(r)), 0o600); err != nil {
			return "", err
		}
		soon, cancel := patience(ctx)
		defer cancel()
		c := exec.CommandContext(soon, s.Binary, "check", file)
		starved := false
		c.Cancel = func() error { starved = starve(c.Process); return nil }
		said, err := c.CombinedOutput()
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if starved {
			return "", errStarved
		}
		return verdict(c.ProcessState, said, err)
	}
}

// verdict is the signature of a process that has ended: its code and the shape of the
// first thing that it said.
func verdict(state *os.ProcessState, said []byte, err error) (string, error) {
	if state == nil {
		return "", err
	}
	usage, _ := state.SysUsage().(*syscall.Rusage)
	switch {
	case usage != nil && usage.Maxrss > memoryOfCheck:
		return crashed + " memory", nil
	case state.ExitCode() < 0, state.ExitCode() == 2 && bytes.Contains(said, []byte("goroutine ")):
		return crashed + " " + shape(string(said)), nil
	}
	return fmt.Sprintf("%d %s", state.ExitCode(), shape(string(said))), nil
}

var particulars = regexp.MustCompile(`"[^"]*"|[^ ]*\d[^ ]*|\S*/\S*`)

// shape is the last line of what was said, without its particulars.
func shape(said string) string {
	said = strings.TrimSpace(said)
	line := particulars.ReplaceAllString(said[strings.LastIndex(said, "\n")+1:], "#")
	return line[:min(len(line), 120)]
}

// configuration draws one: the site's, some lines of which are something else.
func configuration(r *rand.Rand) string {
	lines := strings.Split(named(siteConfig, false), "\n")
	for range 1 + r.IntN(6) {
		at := r.IntN(len(lines))
		key, _, _ := strings.Cut(lines[at], ":")
		indent := lines[at][:len(lines[at])-len(strings.TrimLeft(lines[at], " "))]
		switch r.IntN(9) {
		case 0:
			lines[at] = key + ": " + scalar(r)
		case 1:
			lines[at] = key + ": &a [" + scalar(r) + ", *a]"
		case 2:
			lines = append(lines[:at+1], append([]string{lines[at]}, lines[at+1:]...)...)
		case 3:
			other := r.IntN(len(lines))
			lines[at], lines[other] = lines[other], lines[at]
		case 4:
			lines[at] = key + ": " + strings.Repeat(pick(r, "[", "{a: ", "- ", "? "), r.IntN(3000))
		case 5:
			lines[at] += "\n" + indent + "  " + pick(r, "<<: *a", "!!binary x: y", "? [a]", "- x", "a: |\n"+indent+"   x", "'k': v", "\tx: y")
		case 6:
			lines[at] = strings.ReplaceAll(lines[at], pick(r, "1", "0", "canary", "ram", "iqn"), scalar(r))
		case 7:
			lines[at] = laughs(r.IntN(9))
		case 8:
			lines[at] = lines[at][:r.IntN(len(lines[at])+1)]
		}
	}
	return strings.Join(lines, "\n")
}

// scalar draws a value.
func scalar(r *rand.Rand) string {
	return pick(r, "", "~", "true", ".inf", "0x7fffffffffffffff", fmt.Sprint(number(r)), fmt.Sprintf("%dMiB", number(r)), "-1s", "1e400", "2026-11-23", "*", "&a", "!!float x", `"\x00"`, `"\u202e"`,
		"/dev/zero", "/proc/self/mem", "::1", "127.0.0.1:0", "[::]:99999", "iqn.2026-11.example.lunar:canary", strings.Repeat("a", r.IntN(5000)))
}

// laughs are anchors of lists of anchors.
func laughs(depth int) string {
	text := "x0: &x0 [a, a, a, a, a, a, a, a, a]"
	for i := 1; i <= depth; i++ {
		text += fmt.Sprintf("\nx%d: &x%d [%s*x%d]", i, i, strings.Repeat(fmt.Sprintf("*x%d, ", i-1), 8), i-1)
	}
	return text
}

// filesConfig keeps all that can be kept.
const filesConfig = `server: {threads: 1, buffers-per-thread: 4MiB, poll: "off", nop: {interval: 0s}, limits: {memory-per-session: 2MiB}}
portal-groups:
  local: {tag: 1, listen: ["127.0.0.1:0"]}
cache: {size: 16MiB, block-size: 256KiB, segment: DIR/segment, huge: "off"}
volumes:
  back: {type: file, path: DIR/back.img, size: 4MiB, write: back, cache: {flush-age: 1h}}
  guarded: {type: file, path: DIR/guarded.img, size: 2MiB, write: back, protection: 1, cache: {}}
targets:
  iqn.2026-11.example.lunar:open:
    auth-group: none
    luns: [{lun: 0, volume: back}, {lun: 1, volume: guarded}]
`

// fuzzFiles changes what a killed server left, and starts the next one.
func fuzzFiles(s *scene) sender {
	return func(ctx context.Context, r *rand.Rand) (string, error) {
		dir, err := os.MkdirTemp(s.Scratch, "files-")
		if err != nil {
			return "", err
		}
		defer os.RemoveAll(dir)
		d, err := daemon.New(s.Binary, dir, filesConfig)
		if err != nil {
			return "", err
		}
		if err := used(ctx, d); err != nil {
			return "", err
		}
		what, err := disturb(r, dir)
		if err != nil {
			return "", err
		}
		return what + restarted(ctx, d), nil
	}
}

// used starts a server, writes, reserves, and kills it.
func used(ctx context.Context, d *daemon.Server) error {
	portal, err := d.Start()
	if err != nil {
		return err
	}
	c, err := loginAt(ctx, malloryAddress, portal, stranger(openTarget, 1))
	if err == nil {
		key := registrationList(0, 1, 0, 0)
		key[20] = 1 // APTPL
		err = errors.Join(c.Ready(0), c.Ready(1))
		for lun := range uint64(2) {
			_, failed := good(c, cdb16(0x8a, 64, 64), lun, make([]byte, 64*512), 0)
			_, refused := good(c, reserveOut(0, len(key)), lun, key, 0)
			err = errors.Join(err, failed, refused)
		}
	}
	return errors.Join(err, d.Kill(syscall.SIGKILL))
}

// disturb changes words of one file, or files.
func disturb(r *rand.Rand, dir string) (string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && filepath.Ext(path) != ".img" && filepath.Ext(path) != ".yaml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		return "", errors.Join(err, errors.New("the server left no file"))
	}
	path := pick(r, files...)
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	name := particulars.ReplaceAllString(filepath.Base(path), "#")
	how := pick(r, "words", "words", "words", "shorter", "longer", "other's", "empty")
	near := min(len(data), 1<<16) // headers and tables come first
	switch how {
	case "words":
		for range 1 + r.IntN(4) {
			if at := r.IntN(near/8+1) * 8; at+8 <= len(data) {
				binary.LittleEndian.PutUint64(data[at:], number(r))
			}
		}
	case "shorter":
		data = data[:r.IntN(len(data)+1)]
	case "longer":
		data = append(data, noise(r, 1+r.IntN(8192))...)
	case "other's":
		if data, err = os.ReadFile(pick(r, files...)); err != nil {
			return "", err
		}
	case "empty":
		data = nil
	}
	return name + " " + how + ": ", os.WriteFile(path, data, 0o600)
}

// restarted says how the next start went.
func restarted(ctx context.Context, d *daemon.Server) string {
	if err := d.Launch(false); err != nil {
		return err.Error()
	}
	soon, cancel := patience(ctx)
	defer cancel()
	var starved atomic.Bool
	defer context.AfterFunc(soon, func() { starved.Store(starve(d.Process)) })()
	portal, err := d.Ready()
	if err == nil {
		c, err := loginAt(ctx, malloryAddress, portal, stranger(openTarget, 2))
		read := "unreadable"
		if err == nil {
			_, failed := good(c, cdb16(0x88, 0, 256), 0, nil, 256*512)
			c.Close()
			if failed == nil || strings.Contains(failed.Error(), "status 0x02") {
				read = "served"
			}
		}
		if d.Process.Signal(syscall.SIGTERM) != nil {
			read = crashed + " later"
		}
		if read != "served" {
			read += " " + shape(initiatorError(err))
		}
		state, _ := d.Process.Wait()
		return read + crash(state, d.Output.String(), starved.Load())
	}
	state, _ := d.Process.Wait()
	said := d.Output.String()
	return "refused " + shape(said) + crash(state, said, starved.Load())
}

func initiatorError(err error) string {
	var refused *initiator.LoginFailure
	if err == nil || errors.As(err, &refused) {
		return fmt.Sprint(err)
	}
	return ended(err)
}

// crash says whether a process ended as none may.
func crash(state *os.ProcessState, said string, starved bool) string {
	if starved {
		return " without a CPU"
	}
	if state == nil || state.ExitCode() < 0 || strings.Contains(said, "goroutine ") || strings.Contains(said, "panic") {
		return " " + crashed
	}
	return ""
}
