package pdu

import "fmt"

// LoginStatus is Status-Class (high byte) and Status-Detail (low byte) of a
// Login Response (RFC 7143 11.13.5).
type LoginStatus uint16

// Login statuses, by class: success, redirection, initiator error, target error.
const (
	LoginSuccess                 LoginStatus = 0x0000
	LoginTargetMovedTemporarily  LoginStatus = 0x0101
	LoginTargetMovedPermanently  LoginStatus = 0x0102
	LoginInitiatorError          LoginStatus = 0x0200
	LoginAuthenticationFailure   LoginStatus = 0x0201
	LoginAuthorizationFailure    LoginStatus = 0x0202
	LoginNotFound                LoginStatus = 0x0203
	LoginTargetRemoved           LoginStatus = 0x0204
	LoginUnsupportedVersion      LoginStatus = 0x0205
	LoginTooManyConnections      LoginStatus = 0x0206
	LoginMissingParameter        LoginStatus = 0x0207
	LoginCannotInclude           LoginStatus = 0x0208
	LoginSessionTypeNotSupported LoginStatus = 0x0209
	LoginSessionDoesNotExist     LoginStatus = 0x020a
	LoginInvalidDuringLogin      LoginStatus = 0x020b
	LoginTargetError             LoginStatus = 0x0300
	LoginServiceUnavailable      LoginStatus = 0x0301
	LoginOutOfResources          LoginStatus = 0x0302
)

var loginStatusNames = map[LoginStatus]string{
	LoginSuccess:                 "success",
	LoginTargetMovedTemporarily:  "target moved temporarily",
	LoginTargetMovedPermanently:  "target moved permanently",
	LoginInitiatorError:          "initiator error",
	LoginAuthenticationFailure:   "authentication failure",
	LoginAuthorizationFailure:    "authorization failure",
	LoginNotFound:                "not found",
	LoginTargetRemoved:           "target removed",
	LoginUnsupportedVersion:      "unsupported version",
	LoginTooManyConnections:      "too many connections",
	LoginMissingParameter:        "missing parameter",
	LoginCannotInclude:           "can't include in session",
	LoginSessionTypeNotSupported: "session type not supported",
	LoginSessionDoesNotExist:     "session does not exist",
	LoginInvalidDuringLogin:      "invalid request during login",
	LoginTargetError:             "target error",
	LoginServiceUnavailable:      "service unavailable",
	LoginOutOfResources:          "out of resources",
}

// Class is the Status-Class byte.
func (s LoginStatus) Class() uint8 { return uint8(s >> 8) }

// Detail is the Status-Detail byte.
func (s LoginStatus) Detail() uint8 { return uint8(s) }

// String is the RFC's name of the status.
func (s LoginStatus) String() string {
	if name, ok := loginStatusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("login status 0x%04x", uint16(s))
}
