package thirdparty

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/refusals"
	"lunar/target/scsi/sense"
)

// ROD tokens (SPC-4 clause 5.17.6): representations of data that an initiator
// passes around in place of the data.
const (
	TokenLength = 512
	tokenSpan   = TokenLength - 8 // ROD TOKEN LENGTH
	MaxTokens   = 64              // of one logical unit
	MaxRanges   = 64

	changeVulnerable = 0x00800001 // point in time copy - change vulnerable
	zeroToken        = 0xffff0001 // block device zero ROD token: all of it is zeroes

	// Inactivity timeouts.
	defaultTokenTimeout = 60 * time.Second
	maxTokenTimeout     = 10 * time.Minute
)

// Extent is an extent of a medium in bytes.
type Extent struct{ Off, N int64 }

func (r Extent) overlaps(off, n int64) bool { return off < r.Off+r.N && r.Off < off+n }

// Token is a token of a logical unit. It holds no data: it is good for as
// long as nothing changes the blocks that it stands for.
type Token struct {
	holder  string // see Asker
	data    [TokenLength]byte
	Ranges  []Extent
	span    Extent // around all of ranges
	Size    int64  // bytes that it represents
	timeout time.Duration

	// revoked says that one of its blocks has changed, or is about to: set
	// before the change begins. A copy that has read blocks of the token
	// looks at it afterwards.
	revoked atomic.Bool

	// Under Tokens.mu.
	users   int       // copies under way that read by it
	idle    time.Time // since when there are none
	deleted bool      // it is unknown from now on
}

// Tokens are the tokens of a logical unit. A command that changes the medium
// looks at the list without a lock.
//
// INVARIANT: a token that is known or has users is on the list, so that every
// change of its blocks revokes it.
type Tokens struct {
	list atomic.Pointer[[]*Token] // never changed, only replaced, under mu; nil: there are none
	mu   sync.Mutex
}

// Changing revokes the tokens for blocks of the extent. It comes before the
// change, and within the extent guard.
func (r *Tokens) Changing(off, n int64) {
	list := r.list.Load()
	if list == nil {
		return
	}
	for _, t := range *list {
		if t.Overlaps(off, n) && !t.revoked.Load() {
			t.revoked.Store(true)
		}
	}
}

// Overlaps reports whether the token stands for blocks of the extent.
func (t *Token) Overlaps(off, n int64) bool {
	return t.span.overlaps(off, n) && slices.ContainsFunc(t.Ranges, func(r Extent) bool { return r.overlaps(off, n) })
}

// Add makes the token known. If there are too many, it takes the place of one that
// is of no use any more, or that somebody has who has more than its holder: a copy
// manager may forget any token before its time (SPC-4 clause 5.17.6.7). False says
// that there is no room.
func (r *Tokens) Add(t *Token, now time.Time, count *refusals.Counters) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.idle = now
	list := r.keep(func(o *Token) bool { return o.users > 0 || !o.deleted && !o.expired(now) })
	if len(list) >= MaxTokens {
		at := slices.IndexFunc(list, func(o *Token) bool { return o.users == 0 && o.revoked.Load() })
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
func spare(list []*Token, holder string) int {
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
func (r *Tokens) keep(stays func(*Token) bool) []*Token {
	var kept []*Token
	if list := r.list.Load(); list != nil {
		for _, t := range *list {
			if stays(t) {
				kept = append(kept, t)
			}
		}
	}
	return kept
}

func (r *Tokens) replace(list []*Token) {
	if len(list) == 0 {
		r.list.Store(nil)
		return
	}
	r.list.Store(&list)
}

// Find returns the token with this content, or nil.
func (r *Tokens) Find(data []byte) *Token {
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

// Use lets a copy read by the token until Release; what stands against it is
// returned.
func (r *Tokens) Use(t *Token, now time.Time) *sense.Data {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case t.deleted:
		return sense.TokenUnknown
	case t.revoked.Load():
		return sense.TokenRevoked
	case t.expired(now):
		return sense.TokenExpired
	}
	t.users++
	return nil
}

// Release ends a use; with remove set the token is unknown afterwards.
func (r *Tokens) Release(t *Token, remove bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.users--
	t.idle = now
	if t.deleted = t.deleted || remove; t.deleted && t.users == 0 {
		r.replace(r.keep(func(o *Token) bool { return o != t }))
	}
}

// Forget takes a token back that nobody got.
func (r *Tokens) Forget(t *Token) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replace(r.keep(func(o *Token) bool { return o != t }))
}

// expired reports whether nobody has used the token for as long as was asked
// for. The caller holds mu.
func (t *Token) expired(now time.Time) bool { return t.users == 0 && now.Sub(t.idle) > t.timeout }

// Revoked reports whether one of the token's blocks has changed, or is about to.
func (t *Token) Revoked() bool { return t.revoked.Load() }

// Creator is the logical unit that a token is made of, as the token names it.
type Creator struct {
	Unit     []byte // identification descriptor CSCD
	Capacity []byte // READ CAPACITY(16) data without the LBA
	Device   []byte // designation descriptor of the target device
}

// NewToken makes a token for extents of a logical unit (SPC-4 clause 5.17.6.5, SBC-3
// clause 4.28): a header that says what it is, and a secret.
func NewToken(holder string, creator Creator, ranges []Extent, timeout time.Duration) *Token {
	t := &Token{holder: holder, Ranges: ranges, span: ranges[0], timeout: timeout}
	for _, r := range ranges {
		t.Size += r.N
		end := max(t.span.Off+t.span.N, r.Off+r.N)
		t.span.Off = min(t.span.Off, r.Off)
		t.span.N = end - t.span.Off
	}
	be, d := binary.BigEndian, t.data[:]
	rand.Read(d) //nolint:errcheck // it never fails
	clear(d[:8])
	be.PutUint32(d, changeVulnerable)
	be.PutUint16(d[6:], tokenSpan)
	// d[8:16], COPY MANAGER ROD TOKEN IDENTIFIER, is random.
	clear(d[16:128])
	copy(d[16:48], creator.Unit)
	be.PutUint64(d[56:], uint64(t.Size)) // NUMBER OF BYTES REPRESENTED, of 16 bytes
	copy(d[96:128], creator.Capacity)    // DEVICE TYPE SPECIFIC DATA
	// TARGET DEVICE DESCRIPTOR, behind which all is secret. The longest iSCSI
	// name (RFC 7143 section 4.2.7.1) leaves more than 100 bytes.
	copy(d[128:], creator.Device)
	return t
}

// Kind is what a token given by an initiator stands for.
type Kind uint8

// The kinds of tokens.
const (
	UnknownToken Kind = iota // of a type that is not known here
	InvalidToken             // with a length that no token has
	ZeroToken                // zeroes
	DataToken                // the blocks of a Token
)

// KindOf tells it by the token's header.
func KindOf(data []byte) Kind {
	be := binary.BigEndian
	switch kind := be.Uint32(data); {
	case be.Uint16(data[6:]) != tokenSpan:
		return InvalidToken
	case kind == zeroToken:
		return ZeroToken
	case kind == changeVulnerable:
		return DataToken
	}
	return UnknownToken
}
