package login

import "lunar/target/pdu"

// MaxNameLength is the greatest length of an iSCSI name in bytes (RFC 7143
// 4.2.7.1).
const MaxNameLength = 223

// identify reads who wants what from the first request and asks Access.
func (n *Negotiation) identify(pairs []pdu.Pair) *Error {
	for _, p := range pairs {
		if k := keyByName[p.Key]; k != nil && k.identity {
			if _, err := n.answer(k, p); err != nil {
				return err
			}
		}
	}
	switch {
	case n.initiatorName == "":
		return Errorf(pdu.LoginMissingParameter, "no InitiatorName in the first request")
	case n.targetName == "" && n.sessionType == Normal:
		return Errorf(pdu.LoginMissingParameter, "no TargetName in the first request of a normal session")
	}
	n.identified = true
	return n.lookUp()
}

func (n *Negotiation) lookUp() *Error {
	auth, err := n.config.Access.Lookup(Query{
		InitiatorName: n.initiatorName,
		TargetName:    n.targetName,
		Discovery:     n.sessionType == Discovery,
	})
	if err != nil {
		return err
	}
	n.auth = auth
	if n.auth.Algorithms == nil {
		n.auth.Algorithms = DefaultAlgorithms
	}
	if n.stage != pdu.StageSecurityNegotiation && !auth.AllowNone {
		return Errorf(pdu.LoginAuthenticationFailure, "initiator skips the security stage, expected CHAP")
	}
	return nil
}

func declareInitiatorName(n *Negotiation, k *key, v string) *Error {
	n.initiatorName = v
	return checkName(k, n.identified, v)
}

func declareTargetName(n *Negotiation, k *key, v string) *Error {
	n.targetName = v
	return checkName(k, n.identified, v)
}

func checkName(k *key, late bool, v string) *Error {
	switch {
	case late:
		return Errorf(pdu.LoginInitiatorError, "%s after the first request", k.name)
	case v == "" || len(v) > MaxNameLength:
		return Errorf(pdu.LoginInitiatorError, "%s of %d bytes, expected 1 to %d", k.name, len(v), MaxNameLength)
	}
	return nil
}

func declareInitiatorAlias(n *Negotiation, _ *key, v string) *Error {
	n.initiatorAlias = v
	return nil
}

func declareSessionType(n *Negotiation, _ *key, v string) *Error {
	asked := Normal
	switch v {
	case "Normal":
	case "Discovery":
		asked = Discovery
	default:
		return Errorf(pdu.LoginSessionTypeNotSupported, "SessionType=%q, expected Normal or Discovery", v)
	}
	if n.identified && asked != n.sessionType {
		return Errorf(pdu.LoginInitiatorError, "SessionType after the first request")
	}
	n.sessionType = asked
	return nil
}
