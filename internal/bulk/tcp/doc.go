// Package tcp is the link of a move of a volume over sockets.
//
// Control messages go over TLS 1.3. Both sides have a one-time key, from which each makes its
// certificate and knows the other's: who has not the key comes nowhere. Blocks go over
// sockets of their own, enciphered by a key that the TLS session exports (RFC 8446 section
// 7.5), and each in front of it its BLOCK_DONE: the link is ordered.
package tcp
