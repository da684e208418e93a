package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"lunar/conf"
	"lunar/control"
	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

// fullConfig is what the server has. The files of volumes lie where there is space.
const fullConfig = `# made by evidence-operate
portal-groups:
  a: {listen: ["127.0.0.1:0"]}
volumes:
  canary: {type: ram, size: 16MiB}
  disk: {type: file, path: DIR/disk.img, size: 1MiB, sanitize-rate: 1MiB}
targets:
  iqn.2026-11.example:canary: {luns: {0: canary}}
`

// full has the disks with the configuration and with the state be full, one after the
// other, and a server killed amid jobs. That is done by a process of its own, for which
// small file systems are mounted that nobody else sees.
func full(ctx context.Context, o options) (facts, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tgtd, err := filepath.Abs(o.Tgtd)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	c := exec.CommandContext(ctx, self, "fill", tgtd)
	c.Stdout, c.Stderr = &out, &said
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if id := os.Getuid(); id != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: id, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said.String())
	}
	var found facts
	return found, json.Unmarshal(out.Bytes(), &found)
}

// fillCommand is that process.
type fillCommand struct {
	Tgtd string `arg:""`
}

// filled is a server with two small file systems.
type filled struct {
	*daemon.Server
	api    *control.Client
	canary *canary.Canary
	etc    string // directory of the configuration
	found  facts
}

// Run implements a command of kong.
func (k *fillCommand) Run() (err error) {
	dir, err := os.MkdirTemp("", "operate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f := &filled{etc: filepath.Join(dir, "etc")}
	if f.Server, err = daemon.New(k.Tgtd, dir, fullConfig); err != nil {
		return err
	}
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""), os.Mkdir(f.etc, 0o700),
		small(f.etc, "256k"), small(f.State, "2m"), os.Rename(f.Config, filepath.Join(dir, "first.yaml"))); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, unix.Unmount(f.etc, unix.MNT_DETACH), unix.Unmount(f.State, unix.MNT_DETACH))
	}()
	first, err := os.ReadFile(filepath.Join(dir, "first.yaml"))
	f.Config = filepath.Join(f.etc, "tgtd.yaml")
	if err := errors.Join(err, os.WriteFile(f.Config, first, 0o600), f.begin()); err != nil {
		return err
	}
	defer func() { _ = f.Kill(syscall.SIGKILL) }()
	ctx := context.Background()
	for _, step := range []func(context.Context) error{f.noSpaceForFile, f.noSpaceForState, f.startWithout, f.killed} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%w\n%s", err, f.Output.String())
		}
	}
	return json.NewEncoder(os.Stdout).Encode(f.found)
}

func small(at, size string) error {
	return unix.Mount("tmpfs", at, "tmpfs", 0, "size="+size+",mode=700")
}

// begin starts the server.
func (f *filled) begin() error {
	portal, err := f.Start()
	if err != nil {
		return err
	}
	f.canary = newCanary(portal, false)
	f.api, err = control.Dial(f.Socket())
	return err
}

// fill leaves a file system no space; empty gives it back.
func fill(dir string) error {
	to, err := os.OpenFile(filepath.Join(dir, "filling"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer to.Close()
	for size := 1 << 16; size > 0; size /= 2 {
		for err = nil; err == nil; _, err = to.Write(make([]byte, size)) {
		}
		if !errors.Is(err, unix.ENOSPC) {
			return err
		}
	}
	return nil
}

func empty(dir string) error { return os.Remove(filepath.Join(dir, "filling")) }

func (f *filled) tell(good bool, name, format string, args ...any) {
	f.found = append(f.found, notes.Found(name, fmt.Sprintf(format, args...), good))
}

// rate asks for a rate of the volume, by which changes are told apart.
func (f *filled) rate(ctx context.Context, n int, p control.Permissions) (control.Changed, error) {
	return f.api.Patch(ctx, control.VolumeAt("disk"), control.Object{"sanitize-rate": fmt.Sprint(n, "MiB")}, p, control.Condition{})
}

// rates are what the file has and what is in force; 0 and an error: a file that is not whole.
func (f *filled) rates(ctx context.Context) (file, running int, err error) {
	cfg, _, err := conf.Load(f.Config)
	if err != nil {
		return 0, 0, err
	}
	v, err := f.api.Volume(ctx, "disk")
	if err != nil {
		return 0, 0, err
	}
	text, _ := v.Config["sanitize-rate"].(string)
	rate, err := conf.ParseSize(text)
	return int(cfg.Volume("disk").SanitizeRate / conf.MiB), int(rate / conf.MiB), err
}

// expectRates tells whether both are as they have to be, and whether I/O goes on.
func (f *filled) expectRates(ctx context.Context, when string, file, running int) error {
	inFile, inForce, err := f.rates(ctx)
	if err != nil {
		return err
	}
	_, err = f.canary.Live(ctx, phaseAlone/10, nil)
	f.tell(inFile == file && inForce == running && harm(f.canary) == 0, when+": the file and what is in force are as they were before the request, or after it, as its answer says; I/O goes on", "%s", map[bool]string{true: "yes", false: fmt.Sprintf("file %d, in force %d, expected %d and %d; %v", inFile, inForce, file, running, f.canary.Losses)}[inFile == file && inForce == running && harm(f.canary) == 0])
	return err
}

// expectRefused tells whether a request was refused with an error that says why.
func (f *filled) expectRefused(what string, err error, words ...string) {
	var refused *control.Refusal
	good := errors.As(err, &refused)
	for _, w := range append(words, "no space left") {
		good = good && strings.Contains(err.Error(), w)
	}
	f.tell(good, what, "%s", f.shown(err))
}

// shown is an error without what is different each time.
func (f *filled) shown(err error) string {
	if err == nil {
		return "it was made"
	}
	return strings.NewReplacer(f.Dir, "DIR", "\n", ": ").Replace(err.Error())
}

// noSpaceForFile: the configuration cannot be written.
func (f *filled) noSpaceForFile(ctx context.Context) error {
	if err := fill(f.etc); err != nil {
		return err
	}
	_, err := f.rate(ctx, 2, control.Permissions{})
	f.expectRefused("no space for the configuration file: PATCH", err, "tgtd.yaml", "make space")
	_, err = f.rate(ctx, 2, control.Permissions{Yes: true})
	f.expectRefused("the same with `yes`", err, "tgtd.yaml")
	_, err = f.api.Put(ctx, control.VolumeAt("new"), control.Object{"type": "ram", "size": "1MiB"}, control.Permissions{}, control.Condition{})
	f.expectRefused("PUT of a new volume", err, "tgtd.yaml")
	j, err := f.api.StartChange(ctx, control.Changes{Edits: []control.Edit{{Path: []string{"volumes", "disk"}, Merge: control.Object{"sanitize-rate": "2MiB"}}}})
	if err == nil {
		j, err = f.api.Await(ctx, j.ID, func(*control.Job) {})
	}
	if err != nil {
		return err
	}
	f.expectRefused("the change as a job, which is "+string(j.State), j.Into(&control.Changed{}), "tgtd.yaml")
	if err := f.expectRates(ctx, "no space for the configuration file", 1, 1); err != nil {
		return err
	}
	_, err = f.rate(ctx, 3, control.Permissions{Keep: control.KeepRunning})
	f.tell(err == nil, "`keep=running` meanwhile", "%s", f.shown(err))
	if err := errors.Join(f.expectRates(ctx, "after that", 1, 3), empty(f.etc)); err != nil {
		return err
	}
	_, err = f.api.Save(ctx, control.Save{})
	if err == nil {
		_, err = f.rate(ctx, 4, control.Permissions{})
	}
	f.tell(err == nil, "with space again: save, PATCH", "%s", f.shown(err))
	return f.expectRates(ctx, "with space again", 4, 4)
}

// noSpaceForState: the server can note nothing.
func (f *filled) noSpaceForState(ctx context.Context) error {
	if err := fill(f.State); err != nil {
		return err
	}
	changed, err := f.rate(ctx, 5, control.Permissions{})
	warned := strings.Join(changed.Warnings, "; ")
	f.tell(err == nil && strings.Contains(warned, "no space left"), "no space in the state directory: PATCH is made, with warnings", "%s", f.shown(errors.Join(err, errors.New(warned))))
	if err := f.expectRates(ctx, "no space in the state directory", 5, 5); err != nil {
		return err
	}
	_, err = f.rate(ctx, 6, control.Permissions{Yes: true})
	f.expectRefused("the same with `yes`, of which the next start would have to know", err, "state directory")
	_, err = f.api.Put(ctx, control.VolumeAt("new"), control.Object{"type": "file", "path": f.Dir + "/new.img", "size": "1MiB"}, control.Permissions{}, control.Condition{})
	f.expectRefused("PUT of a new volume with a file, of which the server notes which file that is", err)
	var left []string
	for _, pattern := range []string{"new.img", "etc/*.new", "etc/.*.new", "state/*.new", "state/*/*.new"} {
		some, _ := filepath.Glob(filepath.Join(f.Dir, pattern)) // the patterns are right
		left = append(left, some...)
	}
	f.tell(len(left) == 0, "files that requests left behind which were refused", "%s", strings.TrimSpace(fmt.Sprint(len(left), " ", f.shown(errors.New(strings.Join(left, " "))))))
	return f.expectRates(ctx, "after both", 5, 5)
}

// startWithout: the server is killed, and starts with the disk full as it is.
func (f *filled) startWithout(ctx context.Context) error {
	if err := f.Kill(syscall.SIGKILL); err != nil {
		return err
	}
	err := f.begin()
	if err != nil && !errors.Is(err, daemon.ErrEnded) {
		return err
	}
	told := f.Output.String()
	f.tell(err == nil || strings.Contains(told, "no space left"), "kill -9, and a start without space in the state directory", "%s", map[bool]string{true: "it serves", false: "it is refused: " + f.shown(errors.New(told[max(0, strings.LastIndex(strings.TrimSpace(told), "\n")):]))}[err == nil])
	if err == nil {
		if err := errors.Join(f.expectRates(ctx, "after it", 5, 5), f.Kill(syscall.SIGKILL)); err != nil {
			return err
		}
	}
	if err := errors.Join(empty(f.State), f.begin()); err != nil {
		return err
	}
	_, err = f.rate(ctx, 7, control.Permissions{Yes: true})
	f.tell(err == nil, "kill -9, and a start with space again: PATCH with `yes`", "%s", f.shown(err))
	return f.expectRates(ctx, "with space again", 7, 7)
}

// underWay are so many jobs when the server is killed.
const underWay = 8

// killed kills the server amid jobs, and asks the next one for them.
func (f *filled) killed(ctx context.Context) error {
	var ids []string
	for i := range underWay {
		j, err := f.api.StartChange(ctx, control.Changes{Edits: []control.Edit{{Path: []string{"volumes", fmt.Sprint("job", i)}, Set: control.Object{"type": "ram", "size": "1MiB"}}}})
		if err != nil {
			return err
		}
		ids = append(ids, j.ID)
	}
	done := map[string]bool{} // of which it was said
	if _, err := f.api.Await(ctx, ids[0], func(*control.Job) {}); err != nil {
		return err
	}
	all, err := f.api.Jobs(ctx)
	for _, j := range all {
		done[j.ID] = j.State == control.JobDone
	}
	if err := errors.Join(err, f.Kill(syscall.SIGKILL), f.begin()); err != nil {
		return err
	}
	cfg, _, err := conf.Load(f.Config)
	if err != nil {
		return err
	}
	lost, made := 0, 0
	for i, id := range ids {
		switch there := cfg.Volume(fmt.Sprint("job", i)) != nil; {
		case there:
			made++
		case done[id]:
			lost++
		}
	}
	f.tell(lost == 0, fmt.Sprintf("kill -9 with %d jobs under way or done: changes lost that were said to be done", underWay), "%d (%d were said to be done, the file has %d)", lost, count(done), made)
	jobs, err := f.api.Jobs(ctx)
	if err != nil {
		return err
	}
	_, err = f.api.Job(ctx, ids[0])
	f.tell(len(jobs) == 0 && err != nil && strings.Contains(err.Error(), "the server was started again since"), "what the next server says of such a job", "%s", f.shown(err))
	status, err := f.api.Status(ctx)
	f.tell(len(status.Drift) == 0, "what is in force then differs from the file", "in %d keys", len(status.Drift))
	return err
}

func count(all map[string]bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}
