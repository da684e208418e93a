package target

import (
	"lunar/target/login"
	"lunar/target/pdu"
)

// textExchange is a text request and response under way (RFC 7143 section
// 11.10): both may take several PDUs.
type textExchange struct {
	open    bool
	itt     uint32
	ttt     uint32
	request pdu.Accumulator
	reply   []byte // what is still to be sent
}

// textRequest takes a Text Request PDU: SendTargets, and the few keys that may
// be declared in full feature phase.
func (c *Connection) textRequest(r *request) {
	defer c.finish(r)
	p := (*pdu.TextRequest)(r.bhs)
	if r.badDigest {
		c.reject(r, pdu.RejectDataDigestError)
		return
	}
	x := &c.text
	switch ttt := r.bhs.TTT(); {
	case ttt == pdu.ReservedTag: // a new exchange resets the one under way
		*x = textExchange{open: true, itt: r.bhs.ITT(), ttt: c.newTTT()}
	case !x.open || ttt != x.ttt || r.bhs.ITT() != x.itt:
		c.reject(r, pdu.RejectProtocolError)
		return
	case len(x.reply) > 0: // the initiator asks for the rest
		c.sendText(r)
		return
	}
	text, done, err := x.request.Add(r.data, p.Continue())
	if err != nil {
		x.open = false
		c.reject(r, pdu.RejectProtocolError)
		return
	}
	if done {
		pairs, err := pdu.ParseText(text)
		if _, twice := pdu.DuplicateKey(pairs); err != nil || twice {
			x.open = false
			c.reject(r, pdu.RejectProtocolError)
			return
		}
		x.reply = c.answerText(pairs)
	}
	c.sendText(r)
}

// sendText sends as much of the reply as the initiator takes in one PDU.
func (c *Connection) sendText(r *request) {
	x := &c.text
	n := min(len(x.reply), c.maxControl())
	data := append([]byte(nil), x.reply[:n]...) // or a part that waits would keep the whole
	x.reply = x.reply[n:]
	final := len(x.reply) == 0 && r.bhs.Final()
	var p pdu.TextResponse
	p.Init()
	p.BHS().SetFinal(final)
	p.SetContinue(len(x.reply) > 0)
	p.BHS().SetLUN(r.bhs.LUN())
	p.BHS().SetITT(r.bhs.ITT())
	if final {
		p.BHS().SetTTT(pdu.ReservedTag)
		x.open = false
	} else {
		p.BHS().SetTTT(x.ttt)
	}
	p.BHS().SetDataSegmentLength(n)
	c.mover.SendControl(p.BHS(), data, nil)
}

// answerText answers the keys in the order in which they came.
func (c *Connection) answerText(pairs []pdu.Pair) []byte {
	var out []byte
	for _, kv := range pairs {
		switch kv.Key {
		case "SendTargets":
			out = c.session.server.appendTargets(out, c.session, kv.Value)
		case "MaxRecvDataSegmentLength":
			out = c.declareMaxRecv(out, kv)
		case "InitiatorAlias": // a declaration: nothing to answer
		default:
			if login.Known(kv.Key) {
				out = pdu.AppendPair(out, kv.Key, pdu.ValueReject) // not outside the login phase
			} else {
				out = pdu.AppendPair(out, kv.Key, pdu.ValueNotUnderstood)
			}
		}
	}
	return out
}

// declareMaxRecv takes a new MaxRecvDataSegmentLength of the initiator (RFC
// 7143 section 13.12 allows it in full feature phase).
func (c *Connection) declareMaxRecv(out []byte, kv pdu.Pair) []byte {
	n, err := pdu.ParseNumber(kv.Value)
	if err != nil || n < 512 || n > pdu.MaxDataSegmentLength {
		return pdu.AppendPair(out, kv.Key, pdu.ValueReject)
	}
	if m, ok := c.mover.(interface{ SetMaxDataIn(int) }); ok {
		m.SetMaxDataIn(int(n))
	}
	return out
}
