// Package initiator is the client side of RFC 7143: it logs in as any
// initiator, runs commands, and judges the target that answers.
//
// It exists for tests and for cmd/tgtload. As a judge it must not share the
// defendant's code, so it reads and writes the wire by itself (wire.go) and
// imports nothing of the target: an offset that both sides get wrong in the
// same way would otherwise go unnoticed.
//
// Three levels, each usable alone:
//
//   - Conn.Send, Conn.SendBytes and Conn.Receive exchange single PDUs, wrong
//     ones included. Receive checks what can be checked without knowing the
//     command: digests, StatSN, the command window, reserved fields.
//   - Conn.Start, Conn.Step and Conn.Wait run any number of SCSI commands at
//     once, with immediate, unsolicited and solicited data as negotiated, and
//     check DataSN, offsets, bursts, F and S bits and residuals.
//   - Conn.Command, TaskManagement, Ping, Text, SendTargets and Logout are the
//     synchronous conveniences.
//
// Whatever the target does against the RFC is reported as a *Violation. A Conn
// belongs to one goroutine at a time.
package initiator
