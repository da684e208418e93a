package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/control"
	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/initiator"
)

const objectsConfig = `# Our disks.
portal-groups:
  a: {listen: ["127.0.0.1:0"]}
auth-groups:
  g:
    chap:
      - {user: host, secret: "never to be seen"} # the host
volumes:
  # the first
  disk:
    type: ram
    size: 1MiB # small
targets:
  iqn.2026-11.test:t:
    luns: {0: disk}
`

// objects is a server of a file whose objects are changed.
type objects struct {
	*testing.T
	*serving
	api       *control.Client
	dir, file string
}

func serveObjects(t *testing.T, text string) *objects {
	t.Helper()
	dir := t.TempDir()
	o := &objects{T: t, dir: dir, file: filepath.Join(dir, "tgtd.yaml")}
	writeFile(t, o.file, text)
	o.start()
	return o
}

func (o *objects) start() {
	o.Helper()
	o.serving = serve(o.T, "-c", o.file, "--state-dir", o.dir)
	api, err := control.Dial(filepath.Join(o.dir, control.SocketName))
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(api.Close)
	o.api = api
}

func (o *objects) text() string {
	o.Helper()
	text, err := os.ReadFile(o.file)
	if err != nil {
		o.Fatal(err)
	}
	return string(text)
}

func (o *objects) ok(c control.Changed, err error) control.Changed {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
	return c
}

// refusedWith: a change was refused, and the file is as it was.
func (o *objects) refusedWith(before, why string, err error) {
	o.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		o.Errorf("found %v, expected %q", err, why)
	}
	if now := o.text(); now != before {
		o.Errorf("found the file changed:\n%s", now)
	}
}

// TestObjects: objects are created, changed and removed; the file follows and keeps its
// comments, and the next start serves what was running.
func TestObjects(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	ctx, none, any := t.Context(), control.Permissions{}, control.Condition{}
	o.ok(o.api.Put(ctx, control.VolumeAt("new"), control.Object{"type": "ram", "size": "2MiB"}, none, control.Condition{New: true}))
	o.ok(o.api.Put(ctx, control.LUNAt("iqn.2026-11.test:t", "1"), control.Object{"volume": "new", "read-only": true}, none, any))
	o.ok(o.api.Patch(ctx, control.AuthGroupAt("g"), control.Object{"networks": []string{"127.0.0.0/8"}}, none, any))
	o.ok(o.api.Put(ctx, control.UserAt("g", "other"), control.Object{"secret": "never to be told"}, none, any))
	o.ok(o.api.Patch(ctx, control.TargetAt("iqn.2026-11.test:t"), control.Object{"auth-group": "g", "alias": "the alias"}, none, any))
	o.ok(o.api.Patch(ctx, control.SettingsAt("log"), control.Object{"level": "debug"}, none, any))
	want := strings.NewReplacer("small\n", "small\n  new:\n    type: ram\n    size: 2MiB\n",
		"# the host\n", "# the host\n      - {user: other, secret: \"never to be told\"}\n    networks: [127.0.0.0/8]\n",
		"{0: disk}\n", "[{lun: 0, volume: disk}, {lun: 1, volume: new, read-only: true}]\n    alias: \"the alias\"\n    auth-group: g\nlog:\n  level: debug\n").Replace(objectsConfig)
	if got := o.text(); got != want {
		t.Fatalf("found\n%s\nexpected\n%s", got, want)
	}
	c := dial(t, o.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: &initiator.CHAP{User: "other", Secret: []byte("never to be told")}})
	settle(t, c, 1)

	v, err := o.api.Volume(ctx, "new")
	if err != nil || v.SizeBytes != 2<<20 || v.Config["size"] != "2MiB" || v.ETag == "" {
		t.Errorf("found %+v, %v", v, err)
	}
	for _, path := range []string{"/v1/auth-groups/g", "/v1/auth-groups", "/v1/auth-groups/g/users/other", "/v1/auth-groups/g/users"} {
		if text := raw(t, o.api, path); strings.Contains(text, "never") || !strings.Contains(text, control.Withheld) {
			t.Errorf("%s: found %s", path, text)
		}
	}
	before := o.text()
	_, err = o.api.Delete(ctx, control.LUNAt("iqn.2026-11.test:t", "1"), none, any)
	o.refusedWith(before, "in use", err)
	_, err = o.api.Delete(ctx, control.VolumeAt("none"), none, any)
	o.refusedWith(before, "found none of that name", err)
	_, err = o.api.Put(ctx, control.LUNAt("iqn.2026-11.test:typo", "1"), control.Object{"volume": "new"}, none, any)
	o.refusedWith(before, "targets.iqn.2026-11.test:typo: found none of that name", err)
	_, err = o.api.Put(ctx, control.UserAt("typo", "other"), control.Object{"secret": "never to be told"}, none, any)
	o.refusedWith(before, "auth-groups.typo: found none of that name", err)
	_, err = o.api.Delete(ctx, control.VolumeAt("new"), none, any)
	o.refusedWith(before, "volumes.new: found what refers to it, expected nothing", err)
	_, err = o.api.Put(ctx, control.VolumeAt("new"), control.Object{"type": "ram", "size": "2MiB"}, none, control.Condition{New: true})
	o.refusedWith(before, "found one, expected none", err)
	_, err = o.api.Patch(ctx, control.VolumeAt("new"), control.Object{"size": "4MiB"}, none, control.Condition{Match: `"other"`})
	o.refusedWith(before, "another ETag", err)
	_, err = o.api.Patch(ctx, control.VolumeAt("new"), control.Object{"sise": "4MiB"}, none, any)
	o.refusedWith(before, "unknown key", err)
	dry := o.ok(o.api.Delete(ctx, control.LUNAt("iqn.2026-11.test:t", "1"), control.Permissions{DryRun: true}, any))
	if !dry.DryRun || len(dry.Impacts) == 0 || o.text() != before {
		t.Errorf("found %+v", dry)
	}
	o.ok(o.api.Change(ctx, control.Changes{Permissions: control.Permissions{Yes: true}, Edits: []control.Edit{
		{Path: []string{"targets", "iqn.2026-11.test:t", "luns", "1"}, Remove: true},
		{Path: []string{"volumes", "new"}, Remove: true, IfMatch: v.ETag},
	}}))
	if o.stop() != cli.ExitOK {
		t.Fatalf("the server failed:\n%s", o.log)
	}
	if text := o.log.String(); strings.Contains(text, "never to be") {
		t.Errorf("a secret was logged:\n%s", text)
	}
	o.start()
	if status := statusFrom(t, o.api); len(status.Volumes) != 1 || len(status.Drift) != 0 {
		t.Errorf("found %+v", status)
	}
}

// TestObjectsKept: what cannot be written to the file is not done, unless it is to be
// kept until the next start only.
func TestObjectsKept(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	ctx, any := t.Context(), control.Condition{}
	put := func(keep string) (control.Changed, error) {
		return o.api.Put(ctx, control.VolumeAt("new"), control.Object{"type": "ram", "size": "2MiB"}, control.Permissions{Keep: keep}, any)
	}
	edited := objectsConfig + "# by hand\n"
	writeFile(t, o.file, edited)
	_, err := put("")
	o.refusedWith(edited, "changed by hand", err)
	writeFile(t, o.file, objectsConfig)
	if err := os.Chmod(o.file, 0o400); err != nil {
		t.Fatal(err)
	}
	_, err = put("")
	o.refusedWith(objectsConfig, "cannot be written", err)
	if err := os.Remove(o.file); err != nil {
		t.Fatal(err)
	}
	_, err = put("")
	if err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("found %v", err)
	}
	writeFile(t, o.file, objectsConfig)
	o.ok(put(control.KeepRunning))
	if o.text() != objectsConfig {
		t.Errorf("found the file changed:\n%s", o.text())
	}
	if drift := statusFrom(t, o.api).Drift; len(drift) != 1 || !strings.Contains(drift[0].What, "volumes.new") {
		t.Errorf("found drift %+v", drift)
	}
	o.ok(o.api.Patch(ctx, control.VolumeAt("disk"), control.Object{"soft-threshold": nil, "read-only": true}, control.Permissions{}, any))
	if want := strings.Replace(objectsConfig, "# small\n", "# small\n    read-only: true\n", 1); o.text() != want {
		t.Errorf("found\n%s", o.text())
	}
	_, err = o.api.Patch(ctx, control.VolumeAt("new"), control.Object{"read-only": true}, control.Permissions{}, any)
	if err == nil || !strings.Contains(err.Error(), "drift") {
		t.Errorf("found %v", err)
	}
}

// TestRefusedIsNeverInTheFile: what is refused for what the server finds is in the file at
// no time: a server that is killed meanwhile would not start.
func TestRefusedIsNeverInTheFile(t *testing.T) {
	o := serveObjects(t, objectsConfig)
	before, err := os.Stat(o.file)
	if err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(o.dir, "large.img")
	writeFile(t, large, strings.Repeat("x", 2<<20))
	_, err = o.api.Put(t.Context(), control.VolumeAt("new"), control.Object{"type": "file", "path": large, "size": "1MiB"}, control.Permissions{}, control.Condition{})
	o.refusedWith(objectsConfig, "2097152 bytes", err)
	if after, err := os.Stat(o.file); err != nil || !os.SameFile(before, after) {
		t.Errorf("found another file than before, %v", err)
	}
	if err := os.Mkdir(state.PendingFile(o.dir)+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = o.api.Put(t.Context(), control.VolumeAt("new"), control.Object{"type": "ram", "size": "1MiB"}, control.Permissions{Yes: true}, control.Condition{})
	o.refusedWith(objectsConfig, "cannot be noted", err)
}
