package protect

// polynomial is CRC-T10DIF's (SBC-3 clause 4.22.3), without its highest term.
const polynomial = 0x8bb7

// table has the CRC of each byte value, followed by 0 to 7 bytes of zeroes.
var table = func() (t [8][256]uint16) {
	for i := range 256 {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*polynomial
		}
		t[0][i] = crc
	}
	for n := 1; n < 8; n++ {
		for i, crc := range t[n-1] {
			t[n][i] = crc<<8 ^ t[0][crc>>8]
		}
	}
	return t
}()

// Guard is the CRC-T10DIF of a block: initial value 0, not reflected.
func Guard(block []byte) uint16 { return guard(block) }

// guardTable computes it eight bytes at a time.
func guardTable(crc uint16, b []byte) uint16 {
	for len(b) >= 8 {
		crc = table[7][b[0]^byte(crc>>8)] ^ table[6][b[1]^byte(crc)] ^
			table[5][b[2]] ^ table[4][b[3]] ^ table[3][b[4]] ^ table[2][b[5]] ^ table[1][b[6]] ^ table[0][b[7]]
		b = b[8:]
	}
	for _, v := range b {
		crc = crc<<8 ^ table[0][byte(crc>>8)^v]
	}
	return crc
}
