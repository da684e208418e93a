package login

import (
	"slices"

	"lunar/target/pdu"
)

// negotiate evaluates the keys of one request and returns the answers in the
// order in which the keys came.
func (n *Negotiation) negotiate(pairs []pdu.Pair) ([]pdu.Pair, *Error) {
	values := make([]string, len(pairs))
	for _, late := range []bool{false, true} {
		for i, p := range pairs {
			k := keyByName[p.Key]
			if late != (k != nil && k.late) {
				continue
			}
			v, err := n.answer(k, p)
			if err != nil {
				return nil, err
			}
			values[i] = v
		}
	}
	var answers []pdu.Pair
	for i, v := range values {
		if v != "" {
			answers = append(answers, pdu.Pair{Key: pairs[i].Key, Value: v})
		}
	}
	return answers, nil
}

// answer evaluates one key and returns its answer, empty for none. k is nil
// for a key that this implementation does not know.
func (n *Negotiation) answer(k *key, p pdu.Pair) (string, *Error) {
	if repeated, err := n.note(k, p); repeated || err != nil {
		return "", err
	}
	switch {
	case k == nil && isAnswer(p.Value):
		return "", nil
	case k == nil:
		return pdu.ValueNotUnderstood, nil
	case k.stages&n.stageBit() == 0:
		return "", Errorf(pdu.LoginInitiatorError, "%s in stage %s", k.name, n.stage)
	case k.kind == kindSecurity:
		return n.noteSecurity(p)
	case isAnswer(p.Value):
		return "", nil
	case k.leading && !n.Leading():
		return pdu.ValueReject, nil
	case k.irrelevant != nil && k.irrelevant(n):
		return pdu.ValueIrrelevant, nil
	}
	return n.evaluate(k, p.Value)
}

// note records that a key came. A key may come once (RFC 7143 6.3); a
// declaration that comes again unchanged is let through as repeated, since some
// versions of libiscsi declare their names in each stage.
func (n *Negotiation) note(k *key, p pdu.Pair) (repeated bool, err *Error) {
	before, seen := n.seen[p.Key]
	if !seen {
		n.seen[p.Key] = p.Value
		return false, nil
	}
	if k != nil && k.kind == kindDeclared && before == p.Value {
		return true, nil
	}
	return false, Errorf(pdu.LoginInitiatorError, "key %s comes again", p.Key)
}

// isAnswer reports that a value answers a key that the target sent; answering
// it again would never end.
func isAnswer(v string) bool {
	return v == pdu.ValueNotUnderstood || v == pdu.ValueIrrelevant || v == pdu.ValueReject
}

func (n *Negotiation) stageBit() stages {
	if n.stage == pdu.StageSecurityNegotiation {
		return inSecurity
	}
	return inOperational
}

// evaluate computes the outcome of a relevant key.
func (n *Negotiation) evaluate(k *key, v string) (string, *Error) {
	switch k.kind {
	case kindDeclared:
		return "", k.declare(n, k, v)
	case kindList:
		return n.evaluateList(k, v), nil
	case kindAnd, kindOr:
		return n.evaluateBoolean(k, v), nil
	case kindMin, kindMax:
		return n.evaluateNumber(k, v), nil
	case kindFixed:
		return k.answer, nil
	}
	return pdu.ValueReject, nil
}

func (n *Negotiation) evaluateList(k *key, v string) string {
	own := k.values(&n.config.Offer)
	for _, offered := range pdu.ParseList(v) {
		if slices.Contains(own, offered) {
			k.choose(&n.params, offered)
			return offered
		}
	}
	return pdu.ValueReject
}

func (n *Negotiation) evaluateBoolean(k *key, v string) string {
	offered, err := pdu.ParseBoolean(v)
	if err != nil {
		return pdu.ValueReject
	}
	own := *k.flag(&n.config.Offer.Params)
	agreed := own && offered
	if k.kind == kindOr {
		agreed = own || offered
	}
	*k.flag(&n.params) = agreed
	return pdu.FormatBoolean(agreed)
}

func (n *Negotiation) evaluateNumber(k *key, v string) string {
	offered, err := k.parse(v)
	if err != nil {
		return pdu.ValueReject
	}
	own := *k.number(&n.config.Offer.Params)
	agreed := min(own, offered)
	if k.kind == kindMax {
		agreed = max(own, offered)
	}
	if k.bound != nil {
		agreed = min(agreed, k.bound(&n.params))
	}
	*k.number(&n.params) = agreed
	return pdu.FormatNumber(uint64(agreed))
}

// parse reads a number within the key's legal range.
func (k *key) parse(v string) (uint32, *Error) {
	number, err := pdu.ParseNumber(v)
	if err != nil {
		return 0, Errorf(pdu.LoginInitiatorError, "%s: %v", k.name, err)
	}
	if number < uint64(k.low) || number > uint64(k.high) {
		return 0, Errorf(pdu.LoginInitiatorError, "%s=%d, expected %d to %d", k.name, number, k.low, k.high)
	}
	return uint32(number), nil
}

// declareMaxRecvDataSegmentLength takes the greatest data segment that the
// initiator receives. Login responses keep to it at once, though never above
// the default.
func declareMaxRecvDataSegmentLength(n *Negotiation, k *key, v string) *Error {
	length, err := k.parse(v)
	if err != nil {
		return err
	}
	n.params.InitiatorMaxRecvDataSegmentLength = length
	n.limit = min(length, DefaultMaxRecvDataSegmentLength)
	return nil
}

// declareNothing takes a declared number that nothing depends on.
func declareNothing(_ *Negotiation, k *key, v string) *Error {
	_, err := k.parse(v)
	return err
}

// declareSolicitedOnly takes TaggedBufferForSolicitedDataOnly (RFC 7145 6.9). The
// buffers that initiators tell of begin behind the immediate data, whether they
// use the key or not; one that would not is refused rather than misread.
func declareSolicitedOnly(_ *Negotiation, k *key, v string) *Error {
	if only, err := pdu.ParseBoolean(v); err != nil || !only {
		return Errorf(pdu.LoginInitiatorError, "%s=%q, expected Yes", k.name, v)
	}
	return nil
}

func declareMaxOutstandingUnexpectedPDUs(n *Negotiation, k *key, v string) *Error {
	number, err := k.parse(v)
	if err != nil {
		return err
	}
	n.params.InitiatorMaxOutstandingUnexpectedPDUs = number
	return nil
}
