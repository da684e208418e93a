// Package keyed is what the links of moves have in common, whatever the data go over: a
// control channel between two sides that have a one-time key, and who may come in.
//
// Control messages go over TLS 1.3. From the key each side makes its certificate and knows the
// other's: who has not the key comes nowhere. The TLS session exports (RFC 8446 section 7.5)
// the key of the blocks' cipher, and a token for each data channel, by which the receiver
// knows that it is of who has the control channel.
package keyed
