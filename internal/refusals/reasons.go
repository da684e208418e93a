// Package refusals counts what the server refuses, by reason. The reasons are a
// closed set: nothing that a peer has chosen becomes part of one, so that nobody
// can make the metrics grow.
package refusals

import "sync/atomic"

// Reason is why something was refused or taken away.
type Reason int

// The reasons. texts has what they are called.
const (
	LoginPlaces        Reason = iota // no place in login was free
	LoginDisplaced                   // a connection in login made room for another one
	LoginProtocol                    // a login broke the protocol, or broke off
	LoginAuth                        // it was not authenticated
	CHAPWrong                        // a CHAP user or secret was wrong
	CHAPReflected                    // a CHAP response or challenge was the target's own
	CHAPWeaker                       // a user proved itself by a weaker hash than before
	LoginForbidden                   // it is not allowed
	LoginName                        // its initiator name is another user's, or none of its user's
	LoginPort                        // its initiator port has a session or registration of another user
	Withdrawn                        // a session would not be admitted any more
	LoginNotFound                    // there is no such target
	LoginPlace                       // it is served somewhere else, or not now
	SessionPlaces                    // no session was free
	SessionDisplaced                 // a session made room for another one
	DiscoveryPlaces                  // no discovery session was free
	DiscoveryDisplaced               // a discovery session made room for another one
	Registrations                    // of persistent reservations
	Tokens                           // ROD tokens
	TokenDisplaced                   // a ROD token made room for another one
	Copies                           // copies that a logical unit knows of
	Backgrounds                      // commands that go on without their initiator
	ControlPlaces                    // a client of the control API, or of metrics, made room for another one
	MetricsToken                     // metrics were asked for without their token
	ControlUser                      // a local user may not ask the control API
	ControlToken                     // the control API was asked over TCP without a token or certificate of its own

	// Those of event threads, which ByThreads returns.
	Memory    // a command: data that came unasked found no memory
	Withheld  // a connection: Data-Out did not come in time
	Untaken   // a connection: what was sent was not taken in time
	Partial   // a connection: a PDU did not come to its end in time
	Hoarded   // a command, or a connection: it held what others waited for, and did not go on
	Function  // task management of others' tasks, by who may only read
	Write     // a command that writes or changes what others find, by who may not
	Retention // to keep the tasks of a lost connection, for want of memory
	reasons
)

// texts are the values of the label, and what they mean for the documentation.
var texts = [reasons][2]string{
	LoginPlaces:        {"login-places", "connections turned away because all places in login were taken"},
	LoginDisplaced:     {"login-displaced", "connections in login broken off for those of others"},
	LoginProtocol:      {"login-protocol", "logins that broke the protocol, took too long or broke off"},
	LoginAuth:          {"login-authentication", "logins whose authentication failed"},
	CHAPWrong:          {"chap-wrong", "wrong CHAP users or secrets, which are among the logins whose authentication failed"},
	CHAPReflected:      {"chap-reflected", "CHAP challenges or responses that were the target's own"},
	CHAPWeaker:         {"chap-weaker", "CHAP by a weaker hash than the user has proven before"},
	LoginForbidden:     {"login-forbidden", "logins that no access rule allows"},
	LoginName:          {"login-name", "logins with an initiator name that is another user's, or none of their user's"},
	LoginPort:          {"login-port", "logins with the name and ISID of a session or registration of another user"},
	Withdrawn:          {"session-withdrawn", "sessions asked to log out because they would not be admitted any more"},
	LoginNotFound:      {"login-not-found", "logins to a target or session that is not there"},
	LoginPlace:         {"login-unavailable", "logins that were redirected or told to try again"},
	SessionPlaces:      {"session-places", "logins refused because all sessions were taken"},
	SessionDisplaced:   {"session-displaced", "sessions dropped for those of others"},
	DiscoveryPlaces:    {"discovery-places", "logins refused because all discovery sessions were taken"},
	DiscoveryDisplaced: {"discovery-displaced", "discovery sessions dropped for those of others"},
	Registrations:      {"registrations", "persistent reservation registrations beyond the initiator's share"},
	Tokens:             {"rod-tokens", "ROD tokens beyond what a logical unit keeps"},
	TokenDisplaced:     {"rod-token-displaced", "ROD tokens deleted for those of others"},
	Copies:             {"copies", "copies beyond the initiator's share of what a logical unit keeps"},
	Backgrounds:        {"background-commands", "background commands beyond the initiator's share"},
	ControlPlaces:      {"control-places", "clients of the control API or of metrics dropped for others"},
	MetricsToken:       {"metrics-token", "requests for metrics over TCP without the right token"},
	ControlUser:        {"control-user", "requests to the control socket by users who may not ask"},
	ControlToken:       {"control-token", "requests to the control API over TCP without a token or certificate that it knows"},

	Memory:    {"memory", "writes that found no memory for data that came unasked"},
	Withheld:  {"withheld-data", "connections whose data, which were asked for, did not come in time"},
	Untaken:   {"untaken-data", "connections that did not take in time what they were sent"},
	Partial:   {"partial-pdu", "connections whose PDU did not come to its end in time"},
	Hoarded:   {"hoarded-buffers", "commands and connections that held buffers others waited for, and did not go on"},
	Function:  {"read-only-task-management", "task management of others' tasks by initiators that may only read"},
	Write:     {"write-protected", "commands that change something, by initiators that may only read"},
	Retention: {"retention", "tasks of lost connections that were not kept for want of memory"},
}

// Reasons returns all.
func Reasons() []Reason {
	all := make([]Reason, reasons)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// ByThreads returns those that event threads count, each for itself besides.
func ByThreads() []Reason { return Reasons()[Memory:] }

// String is the name of the reason in metrics.
func (r Reason) String() string { return texts[r][0] }

// Means says what is counted.
func (r Reason) Means() string { return texts[r][1] }

// Counters count refusals. A nil one counts nothing.
type Counters struct {
	counts [reasons]atomic.Uint64
}

// Add counts one.
func (c *Counters) Add(r Reason) {
	if c != nil {
		c.counts[r].Add(1)
	}
}

// Of returns how many there were.
func (c *Counters) Of(r Reason) uint64 {
	if c == nil {
		return 0
	}
	return c.counts[r].Load()
}
