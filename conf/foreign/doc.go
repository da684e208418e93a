// Package foreign makes a configuration of what another target was configured by.
//
// Each format has a file with a pure reader, which makes a server (model.go) of the
// text; build.go makes a configuration of that, and conf judges it. Whatever of the
// text has no place in a configuration becomes a Note with its place: a reader marks
// the items that it has used (item.go), and the others are told of. No secret of a text
// gets into a Note or an error.
//
// The identity of disks follows the rules of the target that a file is of. They were
// read from its source: Linux 6.1 (drivers/target), tgt 1.0.97, SCST 3.11, FreeBSD 14
// (sys/cam/ctl), SPDK 26.09, gotgt 0.2.2.
package foreign
