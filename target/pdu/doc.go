// Package pdu is RFC 7143 on the wire: the Basic Header Segment of every PDU,
// additional header segments, digests, text segments and serial numbers.
//
// A header is a [BHS], 48 bytes in wire order. A PDU type such as
// [SCSICommand] is the same array under another name, so a header is
// "parsed" by a conversion that costs nothing and allocates nothing:
//
//	cmd := (*pdu.SCSICommand)(&bhs)
//	edtl := cmd.ExpectedDataTransferLength()
//
// Fields that most PDUs share, at the same offset, are methods of BHS alone;
// a view reaches them through its BHS method. To build a PDU call the view's
// Init, which clears the header and sets its opcode and its constant bits.
//
// The package holds no state, does no I/O and never panics on bytes from a
// peer. Views do not judge what they show: whether a field's value is legal
// in the connection's state is the caller's question.
package pdu
