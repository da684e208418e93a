// Package tcp is the link of a move of a volume over sockets: the control channel of keyed,
// and a socket for each data channel. On these each block has its BLOCK_DONE in front of it:
// the link is ordered.
package tcp
