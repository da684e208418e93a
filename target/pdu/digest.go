package pdu

import (
	"encoding/binary"
	"hash/crc32"
)

// DigestLength is the length of a header or data digest in bytes.
const DigestLength = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest is a CRC32C in the making or done (RFC 7143 13.1). Zero is the digest
// of no bytes. On the wire its least significant byte comes first.
type Digest uint32

// HeaderDigest is the digest of a header and its additional header segments,
// which carry their own padding (RFC 7143 11.2.3).
func HeaderDigest(bhs *BHS, ahs []byte) Digest {
	return Digest(0).Update(bhs[:]).Update(ahs)
}

// DataDigest is the digest of a data segment and of its padding bytes: as
// received, or ZeroPadding when sending.
func DataDigest(data, padding []byte) Digest {
	return Digest(0).Update(data).Update(padding)
}

// Update is the digest of the bytes that gave d followed by p; data that lies
// in several pieces is digested piece by piece.
func (d Digest) Update(p []byte) Digest {
	return Digest(crc32.Update(uint32(d), castagnoli, p))
}

// Append appends the four wire bytes of d to dst.
func (d Digest) Append(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(dst, uint32(d))
}

// Put stores the four wire bytes of d in dst, which must have that length at
// least.
func (d Digest) Put(dst []byte) { binary.LittleEndian.PutUint32(dst, uint32(d)) }

// ReadDigest reads a digest from its four wire bytes; p must have that length
// at least.
func ReadDigest(p []byte) Digest { return Digest(binary.LittleEndian.Uint32(p)) }

// zeros is what padding is made of; nobody writes to it.
var zeros [3]byte

// ZeroPadding is the zero bytes that pad n bytes to a multiple of 4. The slice
// is shared: read it, never write to it.
func ZeroPadding(n int) []byte { return zeros[:Padding(n):Padding(n)] }
