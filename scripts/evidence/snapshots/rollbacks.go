package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/control"
	"lunar/internal/initiator"
	"lunar/scripts/evidence/notes"
)

// rollbacks has volumes with further keys rolled back to one of their last snapshots, and the
// server killed amid some of it.
func rollbacks(ctx context.Context, o options, keys string) (r result, err error) {
	k, err := newKilling(ctx, o, "xfs", keys)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, k.close()) }()
	rounds := max(o.Snapshots/10, 4)
	done, kept, held := 0, 0, []time.Duration{}
	for i := range rounds {
		name := fmt.Sprintf("r%03d", i)
		if err := k.snapshot(ctx, name); err != nil {
			return r, err
		}
		if len(k.refused) > 0 {
			return r, errors.New(k.refused[0])
		}
		time.Sleep(20 * time.Millisecond)
		k.end()
		back, pause, was, err := k.rollBack(ctx, volumes[i%2], uint64(i%2), name, i%4 == 3)
		if err != nil {
			return r, fmt.Errorf("rollback %d: %w\nthe server said\n%s", i, err, tail(k.Output.String()))
		}
		if back {
			done++
		}
		if back && was { // a kill may also come between both
			kept++
		}
		if pause > 0 {
			held = append(held, pause)
		}
		if err := k.begin(ctx); err != nil {
			return r, err
		}
	}
	k.end()
	slices.Sort(held)
	wrong := "none"
	if len(k.wrong) > 0 {
		wrong = fmt.Sprintf("%d, the first: %s", len(k.wrong), k.wrong[0])
	}
	r.How = "The volumes and writers of the kills. After each snapshot the writers go on for a while and stop; then one volume is rolled back, forced, with what it held kept as a snapshot. Each 4th time the server is killed amid it. The whole volume is read by an initiator before and after: it has to be the snapshot, or, of a server that was killed, what it was. Then writers go on, and the ledger judges the next snapshot by what the volume is now."
	if keys != "" {
		r.How += " Volumes have the keys `" + strings.TrimPrefix(keys, ", ") + "`: a block that does not fit its protection information is read with an error."
	}
	r.Facts = []notes.Fact{
		notes.Found("rollbacks asked for; kills amid them; those that came to pass", fmt.Sprintf("%d; %d; %d", rounds, k.kills, done), done >= rounds-k.kills),
		notes.Found("rollbacks that came to pass, and whose volume of before is a snapshot", strconv.Itoa(kept), kept == done),
		notes.Found("volumes, snapshots and reads that were wrong, and files half-made after a start", wrong, len(k.wrong) == 0),
		notes.Found("images that the ledger has judged", strconv.Itoa(k.whole), k.whole == 2*rounds),
	}
	if len(held) > 0 {
		r.Facts = append(r.Facts, notes.Found("commands held for a rollback: median, longest", fmt.Sprintf("%v, %v", held[len(held)/2], held[len(held)-1]), true))
	}
	return r, nil
}

// rollBack rolls a volume back that nobody writes to, and has the ledger know what it is then.
func (k *killing) rollBack(ctx context.Context, volume string, lun uint64, name string, kill bool) (back bool, pause time.Duration, kept bool, err error) {
	before, err := k.content(ctx, lun)
	if err != nil {
		return back, 0, kept, err
	}
	ended := make(chan error, 1)
	var out control.RolledBack
	go func() {
		var err error
		out, err = k.api.RollBack(ctx, volume, name, control.SnapshotRollback{Force: true})
		ended <- err
	}()
	if kill {
		time.Sleep(time.Duration(k.random.Int64N(int64(k.within))))
		if err := k.kill(); err != nil {
			return back, 0, kept, err
		}
		k.kills++
	}
	answer := <-ended
	if !kill && answer != nil {
		return back, 0, kept, answer
	}
	if kill {
		if err := k.start(); err != nil {
			return back, 0, kept, err
		}
		half, err := k.halfMade(volume)
		if err != nil {
			return back, 0, kept, err
		}
		for _, path := range half {
			k.wrong = append(k.wrong, "half-made after a start: "+path)
		}
	}
	image, err := read(k.image(volume, name))
	if err != nil {
		return back, 0, kept, err
	}
	now, err := k.content(ctx, lun)
	if err != nil {
		return back, 0, kept, err
	}
	switch back = bytes.Equal(now, image); {
	case !back && answer == nil:
		k.wrong = append(k.wrong, fmt.Sprintf("volume %s was rolled back to %s, and is not as it was", volume, name))
	case !back && !bytes.Equal(now, before):
		k.wrong = append(k.wrong, fmt.Sprintf("volume %s after a kill is neither snapshot %s nor as before", volume, name))
	}
	if kept, err = k.keeps(volume, before); err != nil {
		return back, 0, kept, err
	}
	if answer == nil {
		if pause, err = time.ParseDuration(out.Held); err != nil {
			return back, 0, kept, err
		}
	}
	return back, pause, kept, k.loads[lun].again(now)
}

// keeps reports whether the newest snapshot of what was before a rollback is of that, and
// deletes them.
func (k *killing) keeps(volume string, before []byte) (kept bool, err error) {
	all, err := filepath.Glob(k.image(volume, "before-*"))
	if err != nil {
		return false, err
	}
	for _, path := range all {
		image, err := read(path)
		if err != nil {
			return false, err
		}
		kept = kept || bytes.Equal(image, before)
	}
	return kept, nil
}

// content reads a volume by a session of its own.
func (k *killing) content(ctx context.Context, lun uint64) ([]byte, error) {
	size := len(k.loads[lun].blocks) * blockSize
	c, err := initiator.Dial(ctx, k.portal, initiator.Options{Target: target})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	const part = 256 * kib
	var all []byte
	for len(all) < size {
		cdb := make([]byte, 16)
		cdb[0] = 0x88
		binary.BigEndian.PutUint64(cdb[2:], uint64(len(all)/512))
		binary.BigEndian.PutUint32(cdb[10:], part/512)
		r, err := c.Command(cdb, lun, nil, part)
		if err != nil {
			return nil, err
		}
		switch key, asc, ascq := r.SenseKey(); {
		case r.Status == initiator.StatusGood:
			all = append(all, r.In...)
		case key != 6 && !deferred(r.Sense): // a unit attention of a new session
			return nil, fmt.Errorf("byte %d of LUN %d: found status %#x, sense %x/%02x/%02x", len(all), lun, r.Status, key, asc, ascq)
		}
	}
	return all, nil
}

// deferred reports whether sense data tell of an earlier command, as of dirty data that found
// no space (SPC-4 4.5.7): the command that is told of it is sent again.
func deferred(sense []byte) bool {
	return len(sense) > 0 && (sense[0]&0x7f == 0x71 || sense[0]&0x7f == 0x73)
}
