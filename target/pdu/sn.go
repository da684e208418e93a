package pdu

// SN is a 32-bit sequence number: CmdSN, StatSN, DataSN or R2TSN. It wraps,
// so numbers are compared by RFC 1982 serial arithmetic (RFC 7143 4.2.2.1),
// never with < or >.
type SN uint32

// half is the distance at which RFC 1982 leaves the order of two 32-bit
// serial numbers undefined; here neither is less than the other.
const half = 1 << 31

// LessThan reports that s comes before o.
func (s SN) LessThan(o SN) bool {
	d := uint32(o - s)
	return d != 0 && d < half
}

// LessEq reports that s is o or comes before it.
func (s SN) LessEq(o SN) bool { return uint32(o-s) < half }

// Add is the number n places after s.
func (s SN) Add(n uint32) SN { return s + SN(n) }

// Sub is the signed distance from o to s: positive when s comes after o.
func (s SN) Sub(o SN) int32 { return int32(s - o) }

// InWindow reports that s lies in [first, last]. A window whose last is just
// before its first is empty, as MaxCmdSN = ExpCmdSN-1 means (RFC 7143 4.2.2.1).
func (s SN) InWindow(first, last SN) bool {
	return first.LessEq(last) && uint32(s-first) <= uint32(last-first)
}
