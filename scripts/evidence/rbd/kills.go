//go:build linux && cgo && rbd

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// kills ends OSDs amid checked reads and writes.
func (o *options) kills() error {
	c, err := o.cluster("OSDS=3", "SIZE=3", "STORE=bluestore", "GIB=2")
	if err != nil {
		return err
	}
	defer c.end()
	store, err := c.store("kills", 64<<20)
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := newLoad(store)
	if err != nil {
		return err
	}
	defer l.close()
	fmt.Printf(`
## OSDs killed under checked load

Three OSDs on files (bluestore), size 3, min_size 2. Half reads and half writes of 4 KiB at random blocks, 16 under way, one user of a block at a time; each read is compared with what was written last. An OSD is killed (SIGKILL) after 3 s, and started again 6 s later. At the end all blocks are read. The gap is the longest time in which no operation ended.

| kill | operations | errors | gap | slowest operation |
|---|--:|--:|--:|--:|
`)
	if err := o.row(l, "none", func() { time.Sleep(6 * time.Second) }); err != nil {
		return err
	}
	for i := range o.Kills {
		osd := i % 3
		err := o.row(l, fmt.Sprint("OSD ", osd), func() {
			time.Sleep(3 * time.Second)
			if err := c.kill(osd); err != nil {
				l.on(func() { l.err = err })
			}
			time.Sleep(6 * time.Second)
		})
		if err != nil {
			return err
		}
		if err := o.row(l, fmt.Sprint("OSD ", osd, " comes back"), func() {
			if err := c.command("restart " + strconv.Itoa(osd)); err != nil {
				l.on(func() { l.err = err })
			}
			time.Sleep(8 * time.Second)
		}); err != nil {
			return err
		}
	}
	checked, err := l.all()
	if err != nil {
		return err
	}
	fmt.Printf("\nAll %d blocks that were written hold what was acknowledged last.\n", checked)
	return nil
}

func (o *options) row(l *load, name string, during func()) error {
	if err := l.run(16, 8, true, during); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Printf("| %s | %d | 0 | %.2f s | %.2f s |\n", name, l.ops, float64(l.gap)/1e9, float64(l.slowest)/1e9)
	return nil
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
