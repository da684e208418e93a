// Package thirdparty is what a copy manager of third-party copies (SPC-4 clause 5.17) knows without moving
// any data: parameter lists of EXTENDED COPY, POPULATE TOKEN and WRITE USING TOKEN taken
// apart; the records of copies under way and ended, with what the RECEIVE COPY commands
// tell of them; ROD tokens; and VPD page 8Fh. Package scsi finds the logical units, and
// makes the copies.
package thirdparty
