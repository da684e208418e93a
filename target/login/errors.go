package login

import (
	"fmt"

	"lunar/target/pdu"
)

// Error ends a login. Class and Detail are the status of the Login Response
// (RFC 7143 11.13.5); Reason is for the log and never holds a secret.
type Error struct {
	Class, Detail uint8
	Reason        string
	// TargetAddress, when Class is a redirection, is the TargetAddress value
	// that the response carries.
	TargetAddress string
	// Guess says what was wrong with the proof of a user, if that is why.
	Guess Guess
}

// Guess is what may be wrong with a CHAP response.
type Guess uint8

// The values of Guess.
const (
	NoGuess   Guess = iota
	Wrong           // unknown user, or wrong secret
	Reflected       // the target's own challenge or response
	Weaker          // a weaker hash than the user has proven before
)

func (e *Error) because(g Guess) *Error {
	e.Guess = g
	return e
}

// Errorf makes an Error of a status and a formatted reason.
func Errorf(status pdu.LoginStatus, format string, args ...any) *Error {
	return &Error{Class: status.Class(), Detail: status.Detail(), Reason: fmt.Sprintf(format, args...)}
}

// Status is Class and Detail as one value.
func (e *Error) Status() pdu.LoginStatus {
	return pdu.LoginStatus(uint16(e.Class)<<8 | uint16(e.Detail))
}

// Error is the status' name and the reason.
func (e *Error) Error() string { return fmt.Sprintf("login: %s: %s", e.Status(), e.Reason) }

// Put makes rsp the Login Response that refuses req, and returns its text.
// The caller stamps the sequence numbers, sends it and closes the connection.
func (e *Error) Put(req *pdu.LoginRequest, rsp *pdu.LoginResponse) []byte {
	putCommon(req, rsp)
	rsp.SetStatus(e.Status())
	var text []byte
	if e.TargetAddress != "" {
		text = pdu.AppendPair(nil, "TargetAddress", e.TargetAddress)
	}
	rsp.BHS().SetDataSegmentLength(len(text))
	return text
}
