// Package crypt enciphers what any backing store holds: AES-256 in XTS mode
// (IEEE 1619-2018, NIST SP 800-38E), each logical block a data unit of its own
// whose number is the tweak. The store below, and whatever it writes besides, such
// as an intent log, sees cipher text only.
//
// A block that reads as zeroes below reads as zeroes above: holes, discarded blocks
// and zeroed ranges keep their meaning, and cost no space. A block of data whose
// cipher text is all zeroes would be lost by that, which of 512 bytes happens once
// in 2^4096 writes.
//
// The data have a random master key of 512 bits, which is kept in a header, wrapped by a
// key from a key file (header.go). The header is in a file of two slots (slots.go) or
// wherever a Place keeps it. Erase makes another
// master key, after which nothing gives the data back. XTS hides data but does not
// prove them: who can write to the medium can put back what a block held before, or
// turn sixteen bytes into random ones. Protection information, which lies above,
// notices the latter.
package crypt
