package bulk

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/internal/pipeline/rftp"
)

// Journal is the file with the sums of the blocks that a receiving volume has stored. A block
// is written before its sum is, so that a block that is not there has no sum after a kill. One
// that was being stored anew may be there in part beside the sum of what was there before, and
// after the machine has failed sums may be ahead of the data: Doubtful says so. Who ends a move
// therefore reads again what was there before it, unless that has ended as a whole (Finish).
//
// The file begins with a head of 4 KiB: magic, size of the volume, the boot of the machine and
// what Finish notes; then 32 bytes for each block.
type Journal struct {
	f        *os.File
	Size     int64 // of the volume in bytes
	Sums     []Sum // zero: not stored
	Doubtful bool  // the machine was started anew since
}

const (
	journalHead  = 4096
	journalMagic = "lunar bulk journal 2"
)

// bootID names the time since the machine was started.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// OpenJournal opens the journal at path, or makes one for a volume of size bytes. One of
// another size is an error. Nobody else can have it open.
func OpenJournal(path string, size int64) (*Journal, error) {
	if err := CheckRoom(size); err != nil {
		return nil, fmt.Errorf("journal %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	j := &Journal{f: f, Size: size, Sums: make([]Sum, Blocks(size))}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		err = fmt.Errorf("found it in use: %w", err)
	} else {
		err = j.load()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), f.Close())
	}
	return j, nil
}

func (j *Journal) load() error {
	head := make([]byte, journalHead)
	switch _, err := io.ReadFull(j.f, head); {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF): // it was being made
		return j.begin(head)
	case err != nil:
		return err
	case !strings.HasPrefix(string(head), journalMagic+"\x00"):
		return errors.New("found another kind of file")
	}
	if found := int64(binary.BigEndian.Uint64(head[64:])); found != j.Size {
		return fmt.Errorf("found one of a volume of %d bytes, expected %d", found, j.Size)
	}
	j.Doubtful = strings.TrimRight(string(head[128:256]), "\x00") != bootID() || bootID() == ""
	return readSums(j.f, j.Sums)
}

// readSums reads sums as far as there are any; the others are zero.
func readSums(from io.Reader, to []Sum) error {
	in := bufio.NewReader(from)
	for i := range to {
		if _, err := io.ReadFull(in, to[i][:]); err != nil {
			to[i] = Sum{}
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
	}
	return nil
}

func (j *Journal) begin(head []byte) error {
	copy(head, journalMagic)
	binary.BigEndian.PutUint64(head[64:], uint64(j.Size))
	copy(head[128:256], bootID())
	_, err := j.f.WriteAt(head, 0)
	return err
}

// Believe says that doubtful sums were compared with the data.
func (j *Journal) Believe() error {
	j.Doubtful = false
	boot := make([]byte, 128)
	copy(boot, bootID())
	_, err := j.f.WriteAt(boot, 128)
	return err
}

// Note writes that a block with a sum is stored; a zero Sum: that it is not.
func (j *Journal) Note(block int64, s Sum) error {
	j.Sums[block] = s
	_, err := j.f.WriteAt(s[:], journalHead+block*rftp.SumSize)
	return err
}

// Stored counts the blocks that are stored.
func (j *Journal) Stored() (n int64) {
	for i := range j.Sums {
		if j.Sums[i] != (Sum{}) && j.Sums[i] != unknown {
			n++
		}
	}
	return n
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }
