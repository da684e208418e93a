package rftp

import "encoding/binary"

// cursor reads the body of a message. What is not there is zero, and bad is set.
type cursor struct {
	rest []byte
	bad  bool
}

func (c *cursor) bytes(n int) []byte {
	if len(c.rest) < n {
		c.bad, c.rest = true, nil
		return make([]byte, n)
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) u16() uint16 { return binary.BigEndian.Uint16(c.bytes(2)) }
func (c *cursor) u32() uint32 { return binary.BigEndian.Uint32(c.bytes(4)) }
func (c *cursor) u64() uint64 { return binary.BigEndian.Uint64(c.bytes(8)) }

func (c *cursor) bool() bool {
	v := c.bytes(1)[0]
	c.bad = c.bad || v > 1
	return v == 1
}

func (c *cursor) text() string {
	n := int(c.u16())
	if n > len(c.rest) || n > MaxText {
		c.bad, c.rest = true, nil
		return ""
	}
	return string(c.bytes(n))
}

// list is the length of a list whose entries have a size; 0 if they are not all there.
func (c *cursor) list(size int) int {
	n := int(c.u16())
	if n*size > len(c.rest) {
		c.bad, c.rest = true, nil
		return 0
	}
	return n
}
