package verbs

import "fmt"

var statusNames = map[Status]string{
	StatusOK: "success", StatusLocalLength: "local length error", StatusLocalQP: "local QP operation error",
	StatusLocalProtection: "local protection error", StatusFlushed: "flushed", StatusBadResponse: "bad response",
	StatusLocalAccess: "local access error", StatusRemoteInvalid: "remote invalid request",
	StatusRemoteAccess: "remote access error", StatusRemoteOperation: "remote operation error",
	StatusRetryExceeded: "transport retries exceeded", StatusRNRExceeded: "receiver-not-ready retries exceeded",
	StatusFatal: "fatal error", StatusGeneral: "general error",
}

// String is the status in words.
func (s Status) String() string { return named(statusNames, s, "status") }

var eventNames = map[EventType]string{
	EventConnectRequest: "connect request", EventConnectError: "connect error", EventUnreachable: "unreachable",
	EventRejected: "rejected", EventEstablished: "established", EventDisconnected: "disconnected",
	EventDeviceRemoval: "device removal", EventAddressChange: "address change", EventTimewaitExit: "timewait exit",
}

// String is the event in words.
func (t EventType) String() string { return named(eventNames, t, "event") }

var asyncNames = map[AsyncType]string{
	AsyncCQError: "completion queue error", AsyncQPFatal: "QP fatal error", AsyncQPRequest: "QP request error",
	AsyncQPAccess: "QP access error", AsyncCommEst: "communication established", AsyncDeviceFatal: "device fatal error",
	AsyncPortActive: "port active", AsyncPortError: "port error",
}

// String is the event in words.
func (t AsyncType) String() string { return named(asyncNames, t, "asynchronous event") }

func named[T ~uint32](names map[T]string, value T, what string) string {
	if name, ok := names[value]; ok {
		return name
	}
	return fmt.Sprintf("%s %d", what, uint32(value))
}
