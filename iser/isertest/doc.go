// Package isertest is an initiator over RDMA for tests: a Wire translates between
// the byte stream of internal/initiator, which judges the target, and iSER over
// iser/verbs/fake, with the buffers of the Linux kernel's ib_iser and in the order
// in which that posts them. A message that does not fit one of those buffers, or
// finds none, fails the test by the rules of the fake.
//
// Over RDMA the target takes the data of a write by itself. A Wire shows each RDMA Read
// to the initiator as the R2Ts for what it names, in the bounds of MaxBurstLength and
// MaxOutstandingR2T, and the Read ends when the initiator has sent that much: so it may
// hold data back, or send them in any order, as over TCP. Data-In are the Wire's own
// making as well, of what was written by the time of the response.
package isertest
