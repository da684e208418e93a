package login

import (
	"io"
	"slices"
	"strconv"

	"lunar/target/pdu"
)

// Values of AuthMethod (RFC 7143 12.1).
const (
	authCHAP = "CHAP"
	authNone = pdu.ValueNone
)

// security is the state of the security stage: first a method is chosen,
// then, for CHAP, an algorithm, and the initiator answers the challenge.
type security struct {
	method string // chosen AuthMethod, empty before
	// chap holds the CHAP keys of the request under evaluation.
	chap map[string]string
	sent *challenge // what the target challenged with, nil before
	// answered: the target has answered the initiator's own challenge.
	answered bool
	// proven: the initiator answered the challenge; user is its CHAP name, claimed
	// what it says that it is.
	proven  bool
	user    string
	claimed string
}

// User is the CHAP name of an initiator that has proven itself, and Answered
// whether the target has done the same: an initiator that then goes away does not
// accept the target's name or secret.
func (n *Negotiation) User() string { return n.security.user }

// Claimed is the CHAP name that the initiator has used, proven or not.
func (n *Negotiation) Claimed() Proof { return Proof{Group: n.auth.Group, User: n.security.claimed} }

// End tells that the login is over, however it has ended: from now on nobody can
// answer its challenge.
func (n *Negotiation) End() {
	if c := n.security.sent; c != nil {
		n.config.Exchanges.over(c.bytes)
	}
}

// proof is who the initiator has proven to be when the login phase ends.
func (n *Negotiation) proof() Proof {
	if !n.security.proven {
		return Proof{}
	}
	return Proof{Group: n.auth.Group, User: n.security.user}
}

// Answered is explained at User.
func (n *Negotiation) Answered() bool { return n.security.answered }

// mayLeaveSecurity reports that the stage's work is done; an initiator that
// wants to leave without having begun it fails.
func (n *Negotiation) mayLeaveSecurity() (bool, *Error) {
	switch {
	case n.security.method == authCHAP:
		return n.security.proven, nil
	case n.auth.AllowNone:
		return true, nil
	}
	return false, Errorf(pdu.LoginAuthenticationFailure, "initiator leaves the security stage, expected AuthMethod=CHAP")
}

// noteSecurity takes one key of the authentication; CHAP keys wait for
// authenticate, which wants them together.
func (n *Negotiation) noteSecurity(p pdu.Pair) (string, *Error) {
	if p.Key == "AuthMethod" {
		return n.chooseMethod(p.Value)
	}
	if n.security.chap == nil {
		n.security.chap = make(map[string]string)
	}
	n.security.chap[p.Key] = p.Value
	return "", nil
}

// chooseMethod picks the initiator's first method that is allowed.
func (n *Negotiation) chooseMethod(v string) (string, *Error) {
	for _, offered := range pdu.ParseList(v) {
		if offered == authNone && n.auth.AllowNone || offered == authCHAP && len(n.auth.Incoming) > 0 {
			n.security.method = offered
			return offered, nil
		}
	}
	return "", Errorf(pdu.LoginAuthenticationFailure, "AuthMethod=%s has no method that is allowed here", v)
}

// authenticate takes the CHAP keys of one request and returns the target's
// (RFC 7143 12.1.3).
func (n *Negotiation) authenticate() ([]pdu.Pair, *Error) {
	got := n.security.chap
	n.security.chap = nil
	switch {
	case len(got) == 0:
		return nil, nil
	case n.security.method != authCHAP:
		return nil, Errorf(pdu.LoginInitiatorError, "CHAP keys, expected AuthMethod=CHAP before")
	case n.security.sent == nil:
		return n.challenge(got)
	case !n.security.proven:
		return n.verify(got)
	}
	return nil, Errorf(pdu.LoginInitiatorError, "CHAP keys after the end of the authentication")
}

// challenge answers CHAP_A with the algorithm that the target prefers among
// the offered ones, an identifier and a challenge of the algorithm's size.
func (n *Negotiation) challenge(got map[string]string) ([]pdu.Pair, *Error) {
	list, ok := got["CHAP_A"]
	if !ok || len(got) > 1 {
		return nil, Errorf(pdu.LoginInitiatorError, "CHAP keys, expected CHAP_A alone")
	}
	algorithm, ok := chooseAlgorithm(n.auth.Algorithms, pdu.ParseList(list))
	if !ok {
		return nil, Errorf(pdu.LoginAuthenticationFailure, "CHAP_A=%s has no algorithm that is allowed here", list)
	}
	random := make([]byte, 1+algorithm.Size())
	if _, err := io.ReadFull(n.config.Rand, random); err != nil {
		return nil, Errorf(pdu.LoginTargetError, "no random bytes for a challenge: %v", err)
	}
	n.security.sent = &challenge{algorithm: algorithm, id: random[0], bytes: random[1:]}
	n.config.Exchanges.challenged(random[1:])
	return []pdu.Pair{
		{Key: "CHAP_A", Value: strconv.Itoa(int(algorithm))},
		{Key: "CHAP_I", Value: strconv.Itoa(int(random[0]))},
		{Key: "CHAP_C", Value: pdu.FormatBinary(random[1:])},
	}, nil
}

// chooseAlgorithm takes the first that is preferred and offered; MD5 only for lack of
// another one, wherever it stands.
func chooseAlgorithm(preferred []Algorithm, offered []string) (chosen Algorithm, ok bool) {
	for _, a := range preferred {
		if a.Size() > 0 && (!ok || chosen == MD5) && slices.Contains(offered, strconv.Itoa(int(a))) {
			chosen, ok = a, true
		}
	}
	return chosen, ok
}

// verify checks CHAP_N and CHAP_R and, when the initiator asks for it by
// CHAP_I and CHAP_C, answers with the target's own proof. Whatever is wrong
// with the proof, the initiator learns one status.
func (n *Negotiation) verify(got map[string]string) ([]pdu.Pair, *Error) {
	user, hasUser := got["CHAP_N"]
	text, hasResponse := got["CHAP_R"]
	if _, again := got["CHAP_A"]; !hasUser || !hasResponse || again {
		return nil, Errorf(pdu.LoginInitiatorError, "CHAP keys, expected CHAP_N and CHAP_R")
	}
	response, err := pdu.ParseBinary(text, pdu.MaxBinaryLength)
	if err != nil {
		return nil, Errorf(pdu.LoginAuthenticationFailure, "CHAP_R: %v", err)
	}
	n.security.claimed = user
	credential, ok := verifyCHAP(n.security.sent, n.auth.Incoming, user, response)
	switch {
	case n.config.Exchanges.answered(response):
		return nil, Errorf(pdu.LoginAuthenticationFailure, "CHAP user %q reflects a response of the target: the secret of mutual is that of a user, give it one of its own", user).because(Reflected)
	case !ok && credential == &stranger:
		return nil, Errorf(pdu.LoginAuthenticationFailure, "unknown CHAP user %q", user).because(Wrong)
	case !ok:
		return nil, Errorf(pdu.LoginAuthenticationFailure, "wrong secret of CHAP user %q", user).because(Wrong)
	}
	if err := n.checkSecret(credential); err != nil {
		return nil, err
	}
	proof, by := Proof{Group: n.auth.Group, User: user}, n.security.sent.algorithm
	if was, ok := n.config.Exchanges.prove(proof, credential.Secret, by, n.auth.Algorithms); !ok {
		return nil, Errorf(pdu.LoginAuthenticationFailure, "CHAP user %q proves itself by %s, and did by %s before: another initiator needs a user of its own, or algorithms of auth-group %s without %s",
			user, by, was, n.auth.Group, was).because(Weaker)
	}
	n.security.user = user
	answer, failure := n.prove(got, credential)
	n.security.proven = failure == nil
	return answer, failure
}

// checkSecret refuses a credential that the configuration should not hold.
func (n *Negotiation) checkSecret(c *Credential) *Error {
	minimum := MinSecretLength
	if n.config.AllowShortSecrets {
		minimum = 0
	}
	if err := c.Validate(minimum); err != nil {
		return Errorf(pdu.LoginAuthenticationFailure, "%v", err)
	}
	return nil
}

// prove answers the initiator's own challenge, if there is one. incoming is
// the credential by which the initiator has just proven itself.
func (n *Negotiation) prove(got map[string]string, incoming *Credential) ([]pdu.Pair, *Error) {
	idText, hasID := got["CHAP_I"]
	text, hasChallenge := got["CHAP_C"]
	switch {
	case !hasID && !hasChallenge:
		return nil, nil
	case !hasID || !hasChallenge:
		return nil, Errorf(pdu.LoginInitiatorError, "CHAP_I and CHAP_C, expected both or none")
	case n.auth.Mutual == nil:
		return nil, Errorf(pdu.LoginAuthenticationFailure, "initiator asks for mutual CHAP, none is configured")
	case n.auth.Mutual.Secret.Equal(incoming.Secret):
		return nil, Errorf(pdu.LoginAuthenticationFailure, "one secret for both directions")
	}
	if err := n.checkSecret(n.auth.Mutual); err != nil {
		return nil, err
	}
	id, err := pdu.ParseNumber(idText)
	if err != nil || id > 255 {
		return nil, Errorf(pdu.LoginInitiatorError, "CHAP_I=%q, expected 0 to 255", idText)
	}
	asked, err := pdu.ParseBinary(text, pdu.MaxBinaryLength)
	if err != nil {
		return nil, Errorf(pdu.LoginInitiatorError, "CHAP_C: %v", err)
	}
	answer := CHAPResponse(n.security.sent.algorithm, uint8(id), n.auth.Mutual.Secret, asked)
	if !n.config.Exchanges.answer(asked, answer) {
		return nil, Errorf(pdu.LoginAuthenticationFailure, "initiator reflects a challenge of the target").because(Reflected)
	}
	n.security.answered = true
	return []pdu.Pair{
		{Key: "CHAP_N", Value: n.auth.Mutual.User},
		{Key: "CHAP_R", Value: pdu.FormatBinary(answer)},
	}, nil
}
