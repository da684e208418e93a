// Package isertest is an initiator over RDMA for tests: a Wire translates between
// the byte stream of internal/initiator, which judges the target, and iSER over
// iser/verbs/fake, with the buffers of the Linux kernel's ib_iser and in the order
// in which that posts them. A message that does not fit one of those buffers, or
// finds none, fails the test by the rules of the fake.
//
// The initiator's commands go out when all of their data are there, because over
// RDMA the target takes them when it likes; R2Ts and Data-In are the Wire's own
// making.
package isertest
