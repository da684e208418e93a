package crypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"runtime"

	"lunar/internal/locked"
)

// MasterSize is the length of a master key in bytes: one AES-256 key for the data
// and one for the tweaks (IEEE 1619-2018 clause 5.1).
const MasterSize = 64

// maxUnit bounds a data unit, in bytes.
const maxUnit = 4096

// tweaks is room for those of one data unit.
type tweaks [maxUnit]byte

// xts is AES-256-XTS for data units of whole cipher blocks. It is safe for concurrent
// use.
//
// golang.org/x/crypto/xts, against which this is tested, works byte by byte on one
// cipher block after the other: 0.28 GB/s here, with what follows 0.93 (blocks of
// 4096 bytes; of 512: 0.6). All tweaks of a unit are made first, so that the rest is
// two passes of vector instructions around AES alone, which by itself makes 1.03.
type xts struct {
	data, tweak cipher.Block
	memory      [2]*locked.Memory // where they are; it lives as long as this
}

func newXTS(master *[MasterSize]byte) *xts {
	x := new(xts)
	x.data, x.memory[0] = newAES(master[:MasterSize/2])
	x.tweak, x.memory[1] = newAES(master[MasterSize/2:])
	return x
}

func newAES(key []byte) (cipher.Block, *locked.Memory) {
	c, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is right
	}
	return locked.Move(c)
}

// seal enciphers src, whole units of unit bytes of which the first has the number
// first, into dst of the same length: the same memory or other.
func (x *xts) seal(dst, src []byte, first uint64, unit int, t *tweaks) {
	for n := 0; n < len(src); n += unit {
		to := dst[n : n+unit]
		x.tweaksOf(first, t[:unit])
		first++
		subtle.XORBytes(to, src[n:n+unit], t[:unit])
		for i := 0; i < unit; i += aes.BlockSize {
			b := to[i : i+aes.BlockSize : i+aes.BlockSize]
			x.data.Encrypt(b, b)
		}
		subtle.XORBytes(to, to, t[:unit])
	}
	runtime.KeepAlive(x)
}

// open deciphers whole units in place; those that are all zeroes stay so.
func (x *xts) open(text []byte, first uint64, unit int, t *tweaks) {
	for n := 0; n < len(text); n += unit {
		b := text[n : n+unit]
		if !zero(b) {
			x.openUnit(b, first, t[:unit])
		}
		first++
	}
	runtime.KeepAlive(x)
}

func (x *xts) openUnit(text []byte, number uint64, t []byte) {
	x.tweaksOf(number, t)
	subtle.XORBytes(text, text, t)
	for i := 0; i < len(text); i += aes.BlockSize {
		b := text[i : i+aes.BlockSize : i+aes.BlockSize]
		x.data.Decrypt(b, b)
	}
	subtle.XORBytes(text, text, t)
}

// zero reports whether b, of whole cipher blocks, has zeroes only.
func zero(b []byte) bool {
	for ; len(b) >= 8; b = b[8:] {
		if binary.NativeEndian.Uint64(b) != 0 {
			return false
		}
	}
	return true
}

// tweaksOf fills t with the tweaks of a data unit: the enciphered number, then each
// the one before multiplied by x in GF(2^128) (clause 5.2).
func (x *xts) tweaksOf(number uint64, t []byte) {
	const feedback = 0x87 // x^7 + x^2 + x + 1
	le := binary.LittleEndian
	le.PutUint64(t, number)
	le.PutUint64(t[8:], 0)
	x.tweak.Encrypt(t[:aes.BlockSize], t[:aes.BlockSize])
	low, high := le.Uint64(t), le.Uint64(t[8:])
	for t = t[aes.BlockSize:]; len(t) >= aes.BlockSize; t = t[aes.BlockSize:] {
		carry := uint64(int64(high)>>63) & feedback
		low, high = low<<1^carry, high<<1|low>>63
		le.PutUint64(t, low)
		le.PutUint64(t[8:], high)
	}
}
