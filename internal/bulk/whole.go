package bulk

import (
	"encoding/binary"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// fileOf is how a file is known again after it was renamed: inode, size and time of the last
// write.
func fileOf(path string) (id [3]uint64, err error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return id, &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	return [3]uint64{st.Ino, uint64(st.Size), uint64(st.Mtim.Nano())}, nil
}

// Where the head of a journal says that the volume is whole: 1, or 2 if it is cipher text; the file; lengths of logical
// and physical blocks; blocks stored, kept and stored again; the checksum; the name.
const (
	wholeAt   = 256
	wholeSize = 8*(1+3+2+3) + 32 + 2
	mostName  = journalHead - wholeAt - wholeSize

	wholeClear, wholeSealed = 1, 2
)

// Finish notes that the volume is whole and equal to what was sent, in the file at path. Who
// is killed before it is served finds that again.
func (j *Journal) Finish(r *Received, path string) error {
	id, err := fileOf(path)
	if err != nil {
		return err
	}
	b, whole := make([]byte, 0, journalHead), uint64(wholeClear)
	if r.Sealed {
		whole = wholeSealed
	}
	for _, n := range []uint64{whole, id[0], id[1], id[2], uint64(r.Unit), uint64(r.Physical), uint64(r.Stored), uint64(r.Kept), uint64(r.Repeated)} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = append(b, r.Checksum[:]...)
	name := r.Name[:min(len(r.Name), mostName)]
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(name))), name...)
	_, err = j.f.WriteAt(b, wholeAt)
	return errors.Join(err, j.f.Sync())
}

// Unfinish says that something is about to be stored: what Finish has noted is so no more, and
// that is stable.
func (j *Journal) Unfinish() error {
	var flag [8]byte
	if _, err := j.f.ReadAt(flag[:], wholeAt); err != nil || flag == [8]byte{} {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	}
	_, err := j.f.WriteAt(make([]byte, 8), wholeAt)
	return errors.Join(err, j.f.Sync())
}

// FindWhole returns what Finish has noted, if the file at path is that one; nil: it is not, or
// there is no such journal.
func FindWhole(journal, path string) *Received {
	f, err := os.OpenFile(journal, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, journalHead)
	id, err := fileOf(path)
	if _, short := io.ReadFull(f, head); short != nil || err != nil || string(head[:len(journalMagic)]) != journalMagic {
		return nil
	}
	var n [9]uint64
	for i := range n {
		n[i] = binary.BigEndian.Uint64(head[wholeAt+8*i:])
	}
	if n[0] != wholeClear && n[0] != wholeSealed || [3]uint64(n[1:4]) != id {
		return nil
	}
	w := &Received{
		Offer:  Offer{Size: int64(binary.BigEndian.Uint64(head[64:])), Unit: int(n[4]), Physical: int(n[5])},
		Stored: int64(n[6]), Kept: int64(n[7]), Repeated: int64(n[8]), Checksum: Sum(head[wholeAt+72 : wholeAt+104]),
		Sealed: n[0] == wholeSealed,
	}
	at := wholeAt + wholeSize
	w.Name = string(head[at : at+min(int(binary.BigEndian.Uint16(head[at-2:])), mostName)])
	return w
}
