// Package debt judges whether a peer delivers in time what it owes, counted in
// bytes: a PDU without data, or a byte now and then, buys no time. Everything is
// pure; the caller's clock gives nanoseconds.
package debt

import "time"

// Terms say how much time a debt has.
type Terms struct {
	Patience time.Duration // that every debt has
	Rate     int64         // bytes a second that are expected besides
}

// Time is how long so many bytes may take.
func (t Terms) Time(bytes int) time.Duration {
	whole, rest := int64(bytes)/t.Rate, int64(bytes)%t.Rate // their product with a second could overflow
	return t.Patience + time.Duration(whole)*time.Second + time.Duration(rest*int64(time.Second)/t.Rate)
}

// Claim is what was asked for at one time and is to come as a whole. The zero value
// claims nothing.
type Claim struct {
	Since int64 // when it was asked for
	Bytes int   // all that the peer may deliver before it has delivered this
}

// Overdue reports whether the claim should have been met by now.
func (c Claim) Overdue(now int64, t Terms) bool {
	return c.Since != 0 && now-c.Since > int64(t.Time(c.Bytes))
}

// Account is a debt that need not be settled as a whole, because new debts join old
// ones: a send queue that is never empty. It is looked at now and then.
type Account struct {
	due  int64 // 0: nothing was owed at the last look
	paid uint64
}

// Look judges the account: whether something is owed now, and the bytes paid so
// far. It is overdue when the bytes paid since something was first owed did not
// come at the rate, but for the patience; what comes faster does not count for later.
func (a *Account) Look(now int64, owed bool, paid uint64, t Terms) (overdue bool) {
	before := a.paid
	a.paid = paid
	latest := now + int64(t.Patience)
	switch {
	case !owed:
		a.due = 0
		return false
	case a.due == 0:
		a.due = latest
		return false
	}
	full := uint64(t.Rate) * uint64(t.Patience/time.Second+1) // more earns no more, and could overflow
	earned := t.Time(int(min(paid-before, full))) - t.Patience
	a.due = min(latest, a.due+int64(earned))
	return now > a.due
}
