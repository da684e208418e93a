package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"lunar/control"
	"lunar/internal/bytesize"
	"lunar/internal/initiator"
	"lunar/scripts/evidence/notes"
)

const spaceConfig = `# made by evidence-snapshots
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {disk: {type: file, path: DISK/disk.img, size: 1GiB DIRECT}}
targets: {"` + target + `": {luns: {0: disk}}}
`

// slack is what metadata of a file system may take, and logs of it.
const slack = 4 * mib

// space compares what the server tells of space with what the file system does.
func space(ctx context.Context, o options) (r result, err error) {
	r.How = "256 MiB are written to a volume of 1 GiB; a snapshot; 64 MiB of them are written again; the snapshot is deleted. What the API tells of the snapshot and of the volume is compared with what the whole file system has in use, which includes its own metadata."
	r.Columns = []string{"after", "in use of the file system", "snapshot: owned", "shared", "volume: owned", "shared"}
	for _, system := range []string{"xfs", "btrfs"} {
		if err := spaceOn(ctx, o, system, &r); err != nil {
			return r, fmt.Errorf("%s: %w", system, err)
		}
	}
	return r, nil
}

func spaceOn(ctx context.Context, o options, system string, r *result) (err error) {
	s, err := newServer(o, system, 4*gib, spaceConfig)
	if err != nil {
		return err
	}
	defer func() {
		if closed := s.close(); err == nil {
			err = closed
		}
	}()
	if err := s.start(); err != nil {
		return err
	}
	c, err := initiator.Dial(ctx, s.portal, initiator.Options{Target: target})
	if err != nil {
		return err
	}
	defer c.Close()
	used, err := s.used()
	if err != nil {
		return err
	}
	step := func(name string, do func() error) (grown int64, snapshot control.Snapshot, volume control.VolumeSnapshots, err error) {
		if err = do(); err != nil {
			return grown, snapshot, volume, err
		}
		now, err := s.used()
		if err != nil {
			return grown, snapshot, volume, err
		}
		grown, used = now-used, now
		row := []string{system + ": " + name, bytesize.Text(now), "", "", "", ""}
		if snapshot, err = s.made(ctx, "disk", "one"); err == nil && snapshot.Owned != nil {
			row[2], row[3] = bytesize.Text(*snapshot.Owned), bytesize.Text(*snapshot.Shared)
			if volume, err = s.told(ctx, "disk", *snapshot.Shared); err != nil {
				return grown, snapshot, volume, err
			}
			row[4], row[5] = bytesize.Text(volume.OwnedBytes), bytesize.Text(volume.SharedBytes)
		}
		r.Rows = append(r.Rows, row)
		return grown, snapshot, volume, nil
	}
	near := func(a, b int64) bool { return a-b < slack && b-a < slack }
	if _, _, _, err = step("256 MiB written", func() error { return fill(c, 0, 256*mib) }); err != nil {
		return err
	}
	taken, one, disk, err := step("a snapshot", func() error {
		_, err := s.api.Snapshot(ctx, "disk", control.SnapshotRequest{Name: "one"})
		return err
	})
	if err != nil {
		return err
	}
	r.Facts = append(r.Facts, notes.Found(system+": a snapshot takes nothing, and shares all", fmt.Sprintf("%s, %s", bytesize.Text(taken), bytesize.Text(*one.Shared)), near(taken, 0) && near(*one.Shared, 256*mib) && near(disk.SharedBytes, 256*mib)))
	if taken, one, disk, err = step("64 MiB written again", func() error { return fill(c, 32*mib, 64*mib) }); err != nil {
		return err
	}
	good := near(taken, 64*mib) && near(*one.Owned+*one.Shared, 256*mib)
	if system == "xfs" { // btrfs keeps an extent as a whole for as long as somebody has a part of it
		good = good && near(*one.Owned, 64*mib) && near(disk.SharedBytes, 192*mib) && near(disk.OwnedBytes, 64*mib)
	}
	r.Facts = append(r.Facts, notes.Found(system+": what is written again takes space; what the snapshot owns then", fmt.Sprintf("%s; %s", bytesize.Text(taken), bytesize.Text(*one.Owned)), good))
	owned, before := *one.Owned, used
	if taken, _, _, err = step("the snapshot deleted", func() error {
		if _, err := s.api.DeleteSnapshot(ctx, "disk", "one"); err != nil {
			return err
		}
		for range 100 { // a file system frees it beside
			if now, err := s.used(); err != nil || before-now >= owned {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	}); err != nil {
		return err
	}
	r.Facts = append(r.Facts, notes.Found(system+": deleting it gives back what it owned", bytesize.Text(-taken), near(-taken, owned)))
	return nil
}

// told is what the status tells of a volume's snapshots, once it shares so many bytes: it is
// measured each minute, and after a change of its snapshots.
func (s *server) told(ctx context.Context, volume string, shared int64) (told control.VolumeSnapshots, err error) {
	for range 90 {
		time.Sleep(time.Second)
		status, err := s.api.Status(ctx)
		if err != nil {
			return told, err
		}
		for _, v := range status.Volumes {
			if v.Name == volume && v.Snapshots != nil {
				told = *v.Snapshots
			}
		}
		if told.SharedBytes == shared {
			break
		}
	}
	return told, nil
}

// fill writes a part of LUN 0.
func fill(c *initiator.Conn, from, size int64) error {
	data := make([]byte, 256*kib)
	for at := from; at < from+size; {
		for i := range len(data) / 8 {
			binary.BigEndian.PutUint64(data[i*8:], uint64(at)+uint64(i))
		}
		cdb := make([]byte, 16)
		cdb[0] = 0x8a
		binary.BigEndian.PutUint64(cdb[2:], uint64(at/512))
		binary.BigEndian.PutUint32(cdb[10:], uint32(len(data)/512))
		r, err := c.Command(cdb, 0, data, 0)
		if err != nil {
			return err
		}
		if r.Status == initiator.StatusGood { // else a unit attention of a new session
			at += int64(len(data))
		}
	}
	return nil
}
