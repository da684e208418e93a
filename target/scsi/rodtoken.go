package scsi

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/refusals"
)

// ROD tokens (SPC-4 clause 5.17.6): representations of data that an initiator
// passes around in place of the data.
const (
	tokenLength    = 512
	tokenSpan      = tokenLength - 8 // ROD TOKEN LENGTH
	maxTokens      = 64              // of one logical unit
	maxTokenRanges = 64

	rodChangeVulnerable = 0x00800001 // point in time copy - change vulnerable
	rodZero             = 0xffff0001 // block device zero ROD token: all of it is zeroes

	// Inactivity timeouts.
	defaultTokenTimeout = 60 * time.Second
	maxTokenTimeout     = 10 * time.Minute
)

// byteRange is an extent of a medium in bytes.
type byteRange struct{ off, n int64 }

func (r byteRange) overlaps(off, n int64) bool { return off < r.off+r.n && r.off < off+n }

// rodToken is a token of a logical unit. It holds no data: it is good for as
// long as nothing changes the blocks that it stands for.
type rodToken struct {
	holder  string // see Nexus.Holder
	data    [tokenLength]byte
	ranges  []byteRange
	span    byteRange // around all of ranges
	size    int64     // bytes that it represents
	timeout time.Duration

	// revoked says that one of its blocks has changed, or is about to: set
	// before the change begins. Who has read blocks of the token looks at it
	// afterwards.
	revoked atomic.Bool

	// Under rodTokens.mu.
	users   int       // copies under way that read by it
	idle    time.Time // since when there are none
	deleted bool      // it is unknown from now on
}

// rodTokens are the tokens of a logical unit. Whoever changes the medium looks
// at the list without a lock.
//
// INVARIANT: a token that is known or has users is on the list, so that every
// change of its blocks revokes it.
type rodTokens struct {
	list atomic.Pointer[[]*rodToken] // never changed, only replaced, under mu; nil: there are none
	mu   sync.Mutex
}

// changing revokes the tokens for blocks of the extent. It comes before the
// change, and within the extent guard.
func (r *rodTokens) changing(off, n int64) {
	list := r.list.Load()
	if list == nil {
		return
	}
	for _, t := range *list {
		if t.overlaps(off, n) && !t.revoked.Load() {
			t.revoked.Store(true)
		}
	}
}

func (t *rodToken) overlaps(off, n int64) bool {
	return t.span.overlaps(off, n) && slices.ContainsFunc(t.ranges, func(r byteRange) bool { return r.overlaps(off, n) })
}

// add makes the token known. If there are too many, it takes the place of one that
// is of no use any more, or that somebody has who has more than its holder: a copy
// manager may forget any token before its time (SPC-4 clause 5.17.6.7). False says
// that there is no room.
func (r *rodTokens) add(t *rodToken, now time.Time, count *refusals.Counters) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.idle = now
	list := r.keep(func(o *rodToken) bool { return o.users > 0 || !o.deleted && !o.expired(now) })
	if len(list) >= maxTokens {
		at := slices.IndexFunc(list, func(o *rodToken) bool { return o.users == 0 && o.revoked.Load() })
		if at < 0 {
			if at = spare(list, t.holder); at < 0 {
				count.Add(refusals.Tokens)
				return false
			}
			count.Add(refusals.TokenDisplaced)
		}
		list = slices.Delete(list, at, at+1)
	}
	r.replace(append(list, t))
	return true
}

// spare returns the token that was made first of those that nobody uses, of the
// holder who has most if it has more than another one would have then; else -1.
func spare(list []*rodToken, holder string) int {
	has := map[string]int{}
	for _, o := range list {
		has[o.holder]++
	}
	at := -1
	for i, o := range list {
		if o.users == 0 && has[o.holder] > has[holder]+1 && (at < 0 || has[o.holder] > has[list[at].holder]) {
			at = i
		}
	}
	return at
}

// keep returns a new list of the tokens that are to stay. The caller holds mu.
func (r *rodTokens) keep(stays func(*rodToken) bool) []*rodToken {
	var kept []*rodToken
	if list := r.list.Load(); list != nil {
		for _, t := range *list {
			if stays(t) {
				kept = append(kept, t)
			}
		}
	}
	return kept
}

func (r *rodTokens) replace(list []*rodToken) {
	if len(list) == 0 {
		r.list.Store(nil)
		return
	}
	r.list.Store(&list)
}

// find returns the token with this content, or nil.
func (r *rodTokens) find(data []byte) *rodToken {
	r.mu.Lock()
	defer r.mu.Unlock()
	if list := r.list.Load(); list != nil {
		for _, t := range *list {
			if !t.deleted && subtle.ConstantTimeCompare(t.data[:], data) == 1 {
				return t
			}
		}
	}
	return nil
}

// use lets a copy read by the token until release; what stands against it is
// returned.
func (r *rodTokens) use(t *rodToken, now time.Time) *Sense {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case t.deleted:
		return TokenUnknown
	case t.revoked.Load():
		return TokenRevoked
	case t.expired(now):
		return TokenExpired
	}
	t.users++
	return nil
}

// release ends a use; with remove set the token is unknown afterwards.
func (r *rodTokens) release(t *rodToken, remove bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.users--
	t.idle = now
	if t.deleted = t.deleted || remove; t.deleted && t.users == 0 {
		r.replace(r.keep(func(o *rodToken) bool { return o != t }))
	}
}

// forget takes a token back that nobody got.
func (r *rodTokens) forget(t *rodToken) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(r.keep(func(o *rodToken) bool { return o != t }))
}

// expired reports whether nobody has used the token for as long as was asked
// for. The caller holds mu.
func (t *rodToken) expired(now time.Time) bool { return t.users == 0 && now.Sub(t.idle) > t.timeout }

// newToken makes a token for extents of the nexus's logical unit (SPC-4 clause
// 5.17.6.5, SBC-3 clause 4.28): a header that says what it is, and a secret.
func newToken(n *Nexus, ranges []byteRange, timeout time.Duration) *rodToken {
	t := &rodToken{holder: n.holder(), ranges: ranges, span: ranges[0], timeout: timeout}
	for _, r := range ranges {
		t.size += r.n
		end := max(t.span.off+t.span.n, r.off+r.n)
		t.span.off = min(t.span.off, r.off)
		t.span.n = end - t.span.off
	}
	be, d := binary.BigEndian, t.data[:]
	rand.Read(d) //nolint:errcheck // it never fails
	clear(d[:8])
	be.PutUint32(d, rodChangeVulnerable)
	be.PutUint16(d[6:], tokenSpan)
	// d[8:16], COPY MANAGER ROD TOKEN IDENTIFIER, is random.
	clear(d[16:128])
	creatorDescriptor(n.LU, d[16:48])
	be.PutUint64(d[56:], uint64(t.size)) // NUMBER OF BYTES REPRESENTED, of 16 bytes
	lu := n.LU
	blocks := readCapacity16(lu.state.Load().Blocks, lu.config.BlockSize, lu.traits().physical, lu.traits().info)
	copy(d[96:128], blocks[8:]) // DEVICE TYPE SPECIFIC DATA: READ CAPACITY(16) without the LBA
	// TARGET DEVICE DESCRIPTOR, behind which all is secret. The longest iSCSI
	// name (RFC 7143 section 4.2.7.1) leaves more than 100 bytes.
	copy(d[128:], deviceName(n.Target))
	return t
}

// creatorDescriptor is an identification descriptor CSCD of the logical unit.
func creatorDescriptor(lu *LogicalUnit, d []byte) {
	d[0], d[1] = cscdIdentification, directAccessDevice
	naa := designator(codeBinary, associatedLU|designatorNAA, binary.BigEndian.AppendUint64(nil, lu.config.NAA))
	copy(d[4:], naa)
	size := lu.config.BlockSize
	d[29], d[30], d[31] = byte(size>>16), byte(size>>8), byte(size)
}
