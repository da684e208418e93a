package windows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
)

// The fast device has a page with its identity, and two segments: a page that says of which
// generation a segment is, and records of it. A record is a page with its header and, for a
// write, its data, filled up to whole pages. All numbers are little-endian.
const (
	page = 4096

	labelMagic  = "LUNARFST"
	recordMagic = "LUNARREC"
	logFormat   = 1

	// Of the first page, and of a segment's.
	labelFormatAt, labelIdentityAt, labelSizeAt, labelGenerationAt = 8, 16, 32, 40
	labelSlowAt                                                    = 48  // three words
	labelSumAt                                                     = 508 // CRC-32C of what is before

	// Of a record.
	recordGenerationAt, recordPositionAt, recordOffAt, recordLenAt, recordKindAt, recordDataSumAt = 8, 16, 24, 32, 40, 44
	recordIdentityAt, recordSumAt                                                                 = 64, 508
)

// segments is how many there are: one takes records while the other is written back.
const segments = 2

// ExcessLeast is the smallest fast device, in bytes.
const ExcessLeast = page + segments*(4<<20)

// label is the first page of the device, or of a segment.
type label struct {
	identity   [16]byte
	size       int64  // of the volume, in bytes
	generation uint64 // of a segment's records; 0 in the first page
	slow       medium // the slow device; zero: it cannot tell, or an earlier version wrote the label
}

func (l *label) encode(b []byte) {
	clear(b[:page])
	copy(b, labelMagic)
	binary.LittleEndian.PutUint32(b[labelFormatAt:], logFormat)
	copy(b[labelIdentityAt:], l.identity[:])
	binary.LittleEndian.PutUint64(b[labelSizeAt:], uint64(l.size))
	binary.LittleEndian.PutUint64(b[labelGenerationAt:], l.generation)
	for i, w := range l.slow {
		binary.LittleEndian.PutUint64(b[labelSlowAt+i*8:], w)
	}
	binary.LittleEndian.PutUint32(b[labelSumAt:], crc32.Checksum(b[:labelSumAt], castagnoli))
}

func (l *label) decode(b []byte) error {
	if string(b[:len(labelMagic)]) != labelMagic || binary.LittleEndian.Uint32(b[labelFormatAt:]) != logFormat {
		return errors.New("found no label of a fast device")
	}
	if binary.LittleEndian.Uint32(b[labelSumAt:]) != crc32.Checksum(b[:labelSumAt], castagnoli) {
		return errors.New("found a damaged label")
	}
	copy(l.identity[:], b[labelIdentityAt:])
	l.size = int64(binary.LittleEndian.Uint64(b[labelSizeAt:]))
	l.generation = binary.LittleEndian.Uint64(b[labelGenerationAt:])
	for i := range l.slow {
		l.slow[i] = binary.LittleEndian.Uint64(b[labelSlowAt+i*8:])
	}
	return nil
}

// record is one change of the volume.
type record struct {
	generation uint64
	position   int64 // of its header on the device
	off, n     int64 // of the volume
	at         int64 // of its data on the device; zeroed or discarded
	sum        uint32
}

func (r *record) encode(b []byte, identity *[16]byte) {
	clear(b[:page])
	copy(b, recordMagic)
	copy(b[recordIdentityAt:], identity[:])
	binary.LittleEndian.PutUint64(b[recordGenerationAt:], r.generation)
	binary.LittleEndian.PutUint64(b[recordPositionAt:], uint64(r.position))
	binary.LittleEndian.PutUint64(b[recordOffAt:], uint64(r.off))
	binary.LittleEndian.PutUint64(b[recordLenAt:], uint64(r.n))
	if r.at < 0 {
		b[recordKindAt] = byte(-r.at)
	}
	binary.LittleEndian.PutUint32(b[recordDataSumAt:], r.sum)
	binary.LittleEndian.PutUint32(b[recordSumAt:], crc32.Checksum(b[:recordSumAt], castagnoli))
}

// decode reports whether a page is the header of a record of a generation at a position.
// The identity, which no initiator knows, tells a record from data that look like one.
func (r *record) decode(b []byte, identity *[16]byte, generation uint64, position int64) bool {
	if string(b[:len(recordMagic)]) != recordMagic || !bytes.Equal(b[recordIdentityAt:][:len(identity)], identity[:]) || binary.LittleEndian.Uint32(b[recordSumAt:]) != crc32.Checksum(b[:recordSumAt], castagnoli) {
		return false
	}
	r.generation = binary.LittleEndian.Uint64(b[recordGenerationAt:])
	r.position = int64(binary.LittleEndian.Uint64(b[recordPositionAt:]))
	r.off = int64(binary.LittleEndian.Uint64(b[recordOffAt:]))
	r.n = int64(binary.LittleEndian.Uint64(b[recordLenAt:]))
	r.at = r.position + page
	if kind := b[recordKindAt]; kind != 0 {
		r.at = -int64(kind)
	}
	r.sum = binary.LittleEndian.Uint32(b[recordDataSumAt:])
	return r.generation == generation && r.position == position && r.n > 0 && r.off >= 0 && r.at >= discarded
}

// length is how many bytes of the device a record takes.
func (r *record) length() int64 {
	if r.at < 0 {
		return page
	}
	return page + (r.n+page-1)/page*page
}

// segment is a part of the device.
type segment struct {
	from, to   int64 // its label, and where it ends
	generation uint64
	next       int64 // where the next record goes
}

func (s *segment) begin(generation uint64) { s.generation, s.next = generation, s.from+page }
func (s *segment) empty() bool             { return s.next == s.from+page }

// used is the share of the segment that records take.
func (s *segment) used() float64 { return float64(s.next-s.from-page) / float64(s.to-s.from-page) }

// journal is the log on the fast device.
type journal struct {
	disk  *disk
	label label

	mu struct {
		sync.Mutex
		segments [segments]segment
		active   int
	}
}

// layout divides a device of size bytes.
func layout(size int64) (all [segments]segment) {
	each := (size - page) / segments / page * page
	for i := range all {
		from := page + int64(i)*each
		all[i] = segment{from: from, to: from + each}
	}
	return all
}

// reserve takes place for a record in the active segment.
func (j *journal) reserve(r *record) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.mu.segments[j.mu.active]
	if s.next+r.length() > s.to {
		return false
	}
	r.generation, r.position = s.generation, s.next
	if r.at >= 0 {
		r.at = r.position + page
	}
	s.next += r.length()
	return true
}

// at returns what a segment is now.
func (j *journal) at(index int) segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.segments[index]
}

// swap has the other segment, which is empty, take records from now on. It returns the
// one that took them.
func (j *journal) swap() (full segment, swapped bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	full = j.mu.segments[j.mu.active]
	other := 1 - j.mu.active
	if full.empty() || !j.mu.segments[other].empty() {
		return full, false
	}
	j.mu.active = other
	return full, true
}

// used is the share of the active segment that records take.
func (j *journal) used() float64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.segments[j.mu.active].used()
}

// erase makes it stable that a segment has no records: it gets a generation of its own,
// above all others. b is a page to write from.
func (j *journal) erase(index int, b []byte) error {
	j.mu.Lock()
	generation := uint64(0)
	for i := range j.mu.segments {
		generation = max(generation, j.mu.segments[i].generation)
	}
	generation++
	from := j.mu.segments[index].from
	j.mu.Unlock()
	l := j.label
	l.generation = generation
	l.encode(b)
	if err := j.disk.write(from, b[:page], true); err != nil {
		return fmt.Errorf("fast device: write a segment's label: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.mu.segments[index].begin(generation)
	return nil
}
