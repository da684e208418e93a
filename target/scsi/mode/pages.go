package mode

import "encoding/binary"

// Values are the bits of mode pages that commands can change, and what bounds them.
type Values struct {
	WriteCache      bool // WCE of the caching mode page: writes may stay volatile until flushed
	SoftProtect     bool // SWP of the control mode page
	DescriptorSense bool // D_SENSE of the control mode page
	OwnTags         bool // ATO of the control mode page: application tags are the initiators'
	WriteThrough    bool // WCE stays zero
}

// Mode page codes and subpage codes that MODE SENSE takes for all of them.
const (
	AllPages    = 0x3f
	AllSubpages = 0xff
)

const subpageFormat = 0x40 // SPF, byte 0 of a mode page

// maxPage is the most bytes that a mode page here has.
const maxPage = 32

// page is one mode page as data: its bytes, and the bits in it that are
// state.
type page struct {
	code, subpage byte
	// base is the page as MODE SENSE returns it, header included, with all
	// bits of state zero. PS is zero: nothing can be saved.
	base []byte
	bits []bit

	has  func(*Parameters) bool    // nil: every unit has the page
	fill func(*Parameters, []byte) // completes base with what is the unit's own
}

// bit is one bit of a mode page that stands for one of Values.
type bit struct {
	offset int // byte within the page, header included
	mask   byte
	field  func(*Values) *bool
	// fixed, if set, says whether MODE SELECT must leave the bit alone.
	fixed func(*Values) bool
}

// pages are the supported mode pages in ascending order.
var pages = []page{
	// Read-write error recovery (SBC-3 clause 6.5): everything as the
	// backing store does it.
	{code: 0x01, base: []byte{0x01, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},

	// Caching (SBC-3 clause 6.5).
	{code: 0x08, base: []byte{0x08, 0x12, 19: 0}, bits: []bit{
		{offset: 2, mask: 0x04, field: writeCache, fixed: isWriteThrough}, // WCE
	}},

	// Control (SPC-4 clause 7.5): one task set for all initiators,
	// unrestricted reordering, no limit on how long BUSY may last.
	{code: 0x0a, base: []byte{0x0a, 0x0a, 0, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0}, bits: []bit{
		{offset: 2, mask: 0x04, field: descriptorSense},        // D_SENSE
		{offset: 4, mask: 0x08, field: softProtect},            // SWP
		{offset: 5, mask: 0x80, field: ownTags, fixed: always}, // ATO
	}},

	// Control extension (SPC-4 clause 7.5).
	{code: 0x0a, subpage: 0x01, base: []byte{subpageFormat | 0x0a, 0x01, 0, 0x1c, 31: 0}},

	// Informational exceptions control (SBC-3 clause 6.5): DEXCPT, there
	// are none.
	{code: 0x1c, base: []byte{0x1c, 0x0a, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, 0}},

	// Logical block provisioning (SBC-3 clause 6.5): one soft threshold, ENABLED, of
	// the resource that is available, armed for its decrease; every initiator is
	// told (SITUA 0). The configuration has set it.
	{
		code: 0x1c, subpage: 0x02, base: []byte{subpageFormat | 0x1c, 0x02, 0, 0x14, 16: 0x80, 17: 0x01, 23: 0},
		has:  func(m *Parameters) bool { return m.Threshold > 0 },
		fill: func(m *Parameters, page []byte) { binary.BigEndian.PutUint32(page[20:], m.Threshold) },
	},
}

func writeCache(s *Values) *bool      { return &s.WriteCache }
func descriptorSense(s *Values) *bool { return &s.DescriptorSense }
func softProtect(s *Values) *bool     { return &s.SoftProtect }

func ownTags(s *Values) *bool { return &s.OwnTags }

func always(*Values) bool           { return true }
func isWriteThrough(s *Values) bool { return s.WriteThrough }

// find returns nil for a page that the unit does not have.
func (m *Parameters) find(code, subpage byte) *page {
	for i := range pages {
		if p := &pages[i]; p.code == code && p.subpage == subpage && m.supports(p) {
			return p
		}
	}
	return nil
}

func (m *Parameters) supports(p *page) bool { return p.has == nil || p.has(m) }

// appendValues appends the page with the values of s.
func (m *Parameters) appendValues(dst []byte, p *page, s *Values) []byte {
	start := len(dst)
	dst = append(dst, p.base...)
	if p.fill != nil {
		p.fill(m, dst[start:])
	}
	for _, b := range p.bits {
		if *b.field(s) {
			dst[start+b.offset] |= b.mask
		}
	}
	return dst
}

// appendMask appends the page with ones for the bits that MODE SELECT may
// change in s, and zeroes for all others but the header (PC 01b, SPC-4 clause
// 6.13).
func (p *page) appendMask(dst []byte, s *Values) []byte {
	start := len(dst)
	dst = append(dst, p.base[:p.headerLength()]...)
	dst = append(dst, make([]byte, len(p.base)-p.headerLength())...)
	for _, b := range p.bits {
		if b.fixed == nil || !b.fixed(s) {
			dst[start+b.offset] |= b.mask
		}
	}
	return dst
}

// store takes the page's bits over into s. The page was checked before.
func (p *page) store(page []byte, s *Values) {
	for _, b := range p.bits {
		*b.field(s) = page[b.offset]&b.mask != 0
	}
}

// headerLength returns the bytes before the mode parameters: page code and
// length, with the subpage code in between in the subpage format.
func (p *page) headerLength() int {
	if p.base[0]&subpageFormat != 0 {
		return 4
	}
	return 2
}
