//go:build linux && cgo && rbd

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lunar/scripts/evidence/notes"
)

// kills ends OSDs amid checked reads and writes.
func kills(_ context.Context, o options) (r notes.Result, err error) {
	c, err := o.cluster("OSDS=3", "SIZE=3", "STORE=bluestore", "GIB=2")
	if err != nil {
		return r, err
	}
	defer c.end()
	store, err := c.store("kills", 64<<20)
	if err != nil {
		return r, err
	}
	defer store.Close()
	l, err := newLoad(store)
	if err != nil {
		return r, err
	}
	defer l.close()
	r.How = fmt.Sprintf("Three OSDs on files (bluestore), size 3, min_size 2. Half reads and half writes of 4 KiB at random blocks, 16 under way, one user of a block at a time; each read is compared with what was written last. An OSD is killed (SIGKILL) after 3 s, and started again 6 s later. At the end all blocks are read. The gap is the longest time in which no operation ended. %s.", cephVersion())
	r.Columns = []string{"kill", "operations", "errors", "gap", "slowest operation"}
	row := func(name string, during func() error) {
		if err != nil {
			return
		}
		var failed error
		err = l.run(16, 8, true, func() { failed = during() })
		if err = errors.Join(err, failed); err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			return
		}
		r.Rows = append(r.Rows, []string{name, fmt.Sprint(l.ops), "0", fmt.Sprintf("%.2f s", float64(l.gap)/1e9), fmt.Sprintf("%.2f s", float64(l.slowest)/1e9)})
	}
	row("none", func() error { time.Sleep(6 * time.Second); return nil })
	for i := range o.Kills {
		osd := i % 3
		row(fmt.Sprint("OSD ", osd), func() error {
			time.Sleep(3 * time.Second)
			err := c.kill(osd)
			time.Sleep(6 * time.Second)
			return err
		})
		row(fmt.Sprint("OSD ", osd, " comes back"), func() error {
			err := c.command("restart " + strconv.Itoa(osd))
			time.Sleep(8 * time.Second)
			return err
		})
	}
	if err != nil {
		return r, err
	}
	checked, err := l.all()
	r.Facts = []notes.Fact{notes.Found("blocks that hold what was acknowledged last", fmt.Sprintf("%d of as many that were written", checked), err == nil)}
	return r, err
}

// kill ends an OSD of the cluster.
func (c *cluster) kill(osd int) error {
	file := filepath.Join(c.dir, "run", fmt.Sprintf("osd.%d.pid", osd))
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

// all reads every block that was written.
func (l *load) all() (checked int, err error) {
	for block := range l.blocks {
		if l.written[block] == 0 {
			continue
		}
		u := &user{load: l, block: block}
		u.op.Data = memory(blockBytes)
		u.op.Off = block * blockBytes
		if err := l.read(u); err != nil {
			return checked, err
		}
		checked++
	}
	return checked, nil
}
