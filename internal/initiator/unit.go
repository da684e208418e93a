package initiator

import (
	"encoding/binary"
	"fmt"
)

// unitAttentions bounds how many pending unit attentions Ready works off.
const unitAttentions = 16

// StatusError is a command that ended with another status than GOOD.
type StatusError struct {
	Opcode byte
	Result *Result
}

// Error names status and sense.
func (e *StatusError) Error() string {
	key, asc, ascq := e.Result.SenseKey()
	return fmt.Sprintf("command %#02x: response %#02x, status %#02x, sense %02x/%02x/%02x",
		e.Opcode, e.Result.Response, e.Result.Status, key, asc, ascq)
}

// good runs a command that has to end with GOOD.
func (c *Conn) good(cdb []byte, lun uint64, out []byte, inLen int) ([]byte, error) {
	r, err := c.Command(cdb, lun, out, inLen)
	if err != nil {
		return nil, err
	}
	if r.Response != 0 || r.Status != StatusGood {
		return nil, &StatusError{cdb[0], r}
	}
	return r.In, nil
}

// Ready sends TEST UNIT READY until the unit attentions of a new session are
// worked off and the logical unit answers GOOD.
func (c *Conn) Ready(lun uint64) (err error) {
	for range unitAttentions {
		if _, err = c.good(make([]byte, 6), lun, nil, 0); err == nil {
			return nil
		}
		failed, ok := err.(*StatusError)
		if !ok {
			return err
		}
		if key, _, _ := failed.Result.SenseKey(); key != 6 {
			return err
		}
	}
	return err
}

// Capacity returns the logical block size in bytes and the number of blocks,
// from READ CAPACITY(16).
func (c *Conn) Capacity(lun uint64) (blockSize int, blocks uint64, err error) {
	in, err := c.good([]byte{0x9e, 0x10, 13: 32, 15: 0}, lun, nil, 32)
	if err != nil {
		return 0, 0, err
	}
	if len(in) < 12 {
		return 0, 0, fmt.Errorf("READ CAPACITY(16) returned %d bytes, expected 12 or more", len(in))
	}
	return int(binary.BigEndian.Uint32(in[8:])), binary.BigEndian.Uint64(in) + 1, nil
}
