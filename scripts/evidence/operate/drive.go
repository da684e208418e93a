package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lunar/control"
	"lunar/internal/initiator"
)

// trouble is a way to use the API, again and again.
type trouble struct {
	name, what string
	clients    int
	call       func(*driver, context.Context, int) error
}

// troubles are all. The last is all of them at once.
var troubles = []trouble{
	{"lists", "status, volumes, targets, sessions, jobs, latencies and the API's own document, by 4 clients", 4, (*driver).lists},
	{"metrics", "metrics, scraped by 2 clients without a pause", 2, (*driver).metrics},
	{"objects", "a volume and a target made, changed and removed, by 4 clients", 4, (*driver).objects},
	{"apply", "`lunar apply` of a file in which every volume changes, and of one with half of them", 1, (*driver).apply},
	{"jobs", "the same as jobs, listed and cancelled, by 4 clients", 4, (*driver).jobs},
	{"events", "16 readers of events, beside 4 hosts that log in and out", 20, (*driver).events},
	{"trace", "a trace of the host's own session", 1, (*driver).trace},
	{"freeze", "freezes and thaws of other volumes, by 2 clients", 2, (*driver).freeze},
	{"all", "all of this at once", 20, (*driver).all},
}

// done is what was done.
type done struct {
	Calls   int64 // and events and PDUs that were told
	Refused int64 // of these, or broken off
	Longest time.Duration
}

func (d *done) add(more done) {
	d.Calls += more.Calls
	d.Refused += more.Refused
	d.Longest = max(d.Longest, more.Longest)
}

// stallConfig is what the server has, with so many volumes and targets besides, each of
// which is changed by a number.
func stallConfig(volumes, number int) string {
	var v, t strings.Builder
	for i := range volumes {
		name := volumeName(i)
		fmt.Fprintf(&v, "  %s: {type: file, path: %s.img, size: 1MiB, sanitize-rate: %dMiB}\n", name, name, number)
		fmt.Fprintf(&t, "  iqn.2026-11.example:%s: {luns: {0: %s}}\n", name, name)
	}
	return scaleConfig[:strings.Index(scaleConfig, "targets:")] + v.String() + "targets:\n  " + canaryTarget + ": {luns: {0: canary}}\n" + t.String()
}

// driveCommand makes calls until its input ends.
type driveCommand struct {
	Name    string `arg:""`
	Socket  string `arg:""`
	Config  string `arg:""`
	Portal  string `arg:""`
	Objects int    `arg:""`
}

// driver is who makes them.
type driver struct {
	driveCommand
	api     *control.Client
	texts   [2]string // of the file
	session int       // of the canary
	every   []trouble // but all at once
	told    atomic.Int64
	refused atomic.Int64
	files   atomic.Int64 // that were written
	longest atomic.Int64
}

// Run implements a command of kong.
func (k *driveCommand) Run() error {
	at := slices.IndexFunc(troubles, func(t trouble) bool { return t.name == k.Name })
	if at < 0 {
		return fmt.Errorf("nothing is called %q", k.Name)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	d := &driver{driveCommand: *k, every: troubles[:len(troubles)-1]}
	if err := d.open(); err != nil {
		return err
	}
	defer d.api.Close()
	fmt.Println(begun)
	if err := d.run(ctx, troubles[at]); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done{d.told.Load(), d.refused.Load(), time.Duration(d.longest.Load())})
}

// begun is what a driver says then.
const begun = "begun"

func (d *driver) open() (err error) {
	if d.api, err = control.Dial(d.Socket); err != nil {
		return err
	}
	d.texts = [2]string{stallConfig(d.Objects/2, 2), stallConfig(d.Objects, 1)}
	status, err := d.api.Status(context.Background())
	for _, s := range status.Sessions {
		if s.Target == canaryTarget {
			d.session = s.TSIH
		}
	}
	return err
}

// run has all clients at work, and is an error if nothing was answered. What has begun
// when ctx ends goes on to its end.
func (d *driver) run(ctx context.Context, t trouble) error {
	var all sync.WaitGroup
	errs := make([]error, t.clients)
	for i := range t.clients {
		all.Go(func() {
			for first := true; first || ctx.Err() == nil; first = false {
				began := time.Now()
				if err := t.call(d, ctx, i); err != nil && ctx.Err() == nil {
					d.refused.Add(1)
					errs[i] = err
				}
				d.told.Add(1)
				d.took(time.Since(began))
			}
		})
	}
	all.Wait()
	if d.told.Load() > d.refused.Load() {
		return nil
	}
	return errors.Join(errs...)
}

func (d *driver) took(t time.Duration) {
	for before := d.longest.Load(); int64(t) > before && !d.longest.CompareAndSwap(before, int64(t)); before = d.longest.Load() {
	}
}

func (d *driver) lists(ctx context.Context, i int) error {
	all := []string{"/v1/status", "/v1/volumes", "/v1/sessions", control.JobsPath, control.LatencyPath, "/v1/targets", "/openapi.json", control.EventsPath + "?follow=false"}
	_, err := d.api.Raw(context.WithoutCancel(ctx), all[(i+int(d.told.Load()))%len(all)])
	return err
}

func (d *driver) metrics(ctx context.Context, _ int) error {
	_, err := d.api.Raw(context.WithoutCancel(ctx), "/metrics")
	return err
}

func (d *driver) objects(ctx context.Context, i int) error {
	ctx = context.WithoutCancel(ctx)
	name := fmt.Sprint("extra", i)
	volume, target := []string{"volumes", name}, []string{"targets", "iqn.2026-11.example:" + name}
	_, err := d.api.Change(ctx, control.Changes{Edits: []control.Edit{
		{Path: volume, Set: control.Object{"type": "ram", "size": "1MiB"}},
		{Path: target, Set: control.Object{"luns": []any{map[string]any{"lun": 0, "volume": name}}}}}})
	if err != nil {
		return err
	}
	if _, err := d.api.Patch(ctx, control.VolumeAt(name), control.Object{"read-only": true}, control.Permissions{Yes: true}, control.Condition{}); err != nil {
		return err
	}
	_, err = d.api.Change(ctx, control.Changes{Edits: []control.Edit{{Path: target, Remove: true}, {Path: volume, Remove: true}}, Permissions: control.Permissions{Yes: true}})
	return err
}

// file writes one of two, in turn.
func (d *driver) file() (control.File, error) {
	text := d.texts[d.files.Add(1)%2]
	return control.File{Name: d.Config, Text: text, Yes: true}, os.WriteFile(d.Config, []byte(text), 0o600)
}

func (d *driver) apply(ctx context.Context, _ int) error {
	f, err := d.file()
	if err == nil {
		_, err = d.api.Apply(context.WithoutCancel(ctx), f)
	}
	return err
}

func (d *driver) jobs(ctx context.Context, i int) error {
	ctx = context.WithoutCancel(ctx)
	if i == 0 {
		f, err := d.file()
		if err != nil {
			return err
		}
		j, err := d.api.StartApply(ctx, f)
		for err == nil && j.Ended == nil { // until it is forgotten: the others have many
			if j, err = d.api.Job(ctx, j.ID); err != nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}
	j, err := d.api.StartChange(ctx, control.Changes{Edits: []control.Edit{{Path: []string{"volumes", fmt.Sprint("extra", i)}, Set: control.Object{"type": "ram", "size": "1MiB"}}}})
	if err != nil {
		return err
	}
	if _, err := d.api.Jobs(ctx); err != nil {
		return err
	}
	_, _ = d.api.CancelJob(ctx, j.ID) // it may have begun
	return nil
}

func (d *driver) events(ctx context.Context, i int) error {
	if i >= 4 {
		return d.api.Events(ctx, nil, "", true, func(control.Event) error { d.told.Add(1); return nil })
	}
	c, err := initiator.Dial(ctx, d.Portal, initiator.Options{Target: "iqn.2026-11.example:" + volumeName(i), ISID: [6]byte{0x80, 0, 0, 0, 1, byte(i)}})
	if err != nil {
		return err
	}
	_, err = c.Logout(0)
	return errors.Join(err, c.Close())
}

func (d *driver) trace(ctx context.Context, _ int) error {
	return d.api.Trace(ctx, d.session, 60, 0, func(*control.TraceLine) error { d.told.Add(1); return nil })
}

func (d *driver) freeze(ctx context.Context, i int) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := d.api.Freeze(ctx, volumeName(i), control.Freeze{}); err != nil {
		return err
	}
	_, err := d.api.Thaw(ctx, volumeName(i))
	return err
}

func (d *driver) all(ctx context.Context, i int) error {
	return d.every[i%len(d.every)].call(d, ctx, i)
}
