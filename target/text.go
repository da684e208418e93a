package target

import (
	"slices"

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
	defer c.releasePlace(r)
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
		if !c.findTargets(r, pairs) {
			return
		}
		x.reply = c.answerText(pairs)
	}
	c.sendText(r)
}

// findTargets reports whether the session knows what to answer to SendTargets, if that
// is among the pairs. If not, the answer follows when it has been made, and nothing
// else that the initiator sends is looked at until then.
func (c *Connection) findTargets(r *request, pairs []pdu.Pair) bool {
	i := slices.IndexFunc(pairs, func(kv pdu.Pair) bool { return kv.Key == "SendTargets" })
	if i < 0 {
		return true
	}
	if _, known := c.session.remembered(pairs[i].Value); known {
		return true
	}
	header := *r.bhs
	c.suspend()
	c.session.node.ask(c.session, pairs[i].Value, func(t told) {
		c.post(func() { c.targetsFound(header, pairs, t) })
	})
	return false
}

// targetsFound answers a text request of which only SendTargets was missing.
func (c *Connection) targetsFound(header pdu.BHS, pairs []pdu.Pair, t told) {
	c.proceed()
	if c.closed && !c.lost {
		return
	}
	c.session.told = t
	c.text.reply = c.answerText(pairs)
	c.sendText(&request{bhs: &header})
}

// sendText sends as much of the reply as the initiator takes in one PDU.
func (c *Connection) sendText(r *request) {
	x := &c.text
	n := min(len(x.reply), c.maxControl())
	data := x.reply[:n:n]
	x.reply = x.reply[n:]
	c.charge(n / workBytes)
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

// answerText answers the keys in the order in which they came. The answer to
// SendTargets is the session's; alone it is not copied.
func (c *Connection) answerText(pairs []pdu.Pair) []byte {
	if len(pairs) == 1 && pairs[0].Key == "SendTargets" {
		return c.session.told.answer
	}
	var out []byte
	for _, kv := range pairs {
		switch kv.Key {
		case "SendTargets":
			out = append(out, c.session.told.answer...)
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
		c.maxDataIn = uint32(c.mover.MaxDataIn())
	}
	return out
}
