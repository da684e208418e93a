package control

import (
	"context"
	"net/url"
	"time"
)

// WhyPath is where a Why is asked for.
const WhyPath = "/v1/why"

// WhyQuery is whose login to what a Why is about.
type WhyQuery struct {
	Initiator string `query:"initiator" required:"true" minLength:"1" maxLength:"255" doc:"iSCSI name of the initiator."`
	Target    string `query:"target" required:"true" minLength:"1" maxLength:"255" doc:"iSCSI name of the target."`
	Address   string `query:"address" doc:"Address that it comes from; without it: that of its session or of its last login that failed."`
	User      string `query:"user" doc:"CHAP user, or GROUP/USER, that it proves to be; without it: every user that it may be is looked at."`
	Portal    string `query:"portal" doc:"Name of a portal group, or address:port of a portal; without it: every group of the target is looked at."`
}

// Why says what a login of an initiator to a target would come to now, and of what.
type Why struct {
	Initiator string `json:"initiator" doc:"iSCSI name of the initiator."`
	Target    string `json:"target" doc:"iSCSI name of the target."`
	Address   string `json:"address,omitempty" doc:"Address that it is taken to come from; absent: none is known, and rules with networks do not match."`
	Admitted  bool   `json:"admitted" doc:"Whether it would be admitted."`
	Decides   string `json:"decides,omitempty" doc:"What decides if it would not: initiator name, target, portal group, access rule, redirection, authentication, owner of the name or limits."`
	Reason    string `json:"reason,omitempty" doc:"The reason, in words."`
	Told      string `json:"told,omitempty" doc:"What the initiator is told: the status of the login response, and its name."`
	Advice    string `json:"advice,omitempty" doc:"What there is to do about it."`

	PortalGroup string    `json:"portalGroup,omitempty" doc:"Portal group by which it would come."`
	Rule        string    `json:"rule,omitempty" doc:"The access rule that matches, in words."`
	AuthGroup   string    `json:"authGroup,omitempty" doc:"Auth group of that rule; absent: none."`
	CHAP        bool      `json:"chap" doc:"Whether it has to authenticate."`
	Users       []WhyUser `json:"users" nullable:"false" doc:"CHAP users that were looked at."`
	LUNs        []WhyLUN  `json:"luns" nullable:"false" doc:"What it would see."`

	Sessions []WhySession `json:"sessions" nullable:"false" doc:"Sessions that it has now."`
	Failures []WhyFailure `json:"failures" nullable:"false" doc:"Its last logins that failed, the newest first, as far as they are remembered."`
}

// WhyUser is a CHAP user with whose secret the initiator would log in.
type WhyUser struct {
	User     string `json:"user" doc:"GROUP/USER."`
	Admitted bool   `json:"admitted" doc:"Whether it would be admitted with the right secret."`
	Reason   string `json:"reason,omitempty" doc:"Why not."`
}

// WhyLUN is a logical unit that the initiator would see.
type WhyLUN struct {
	LUN      int      `json:"lun" doc:"Logical unit number."`
	Volume   string   `json:"volume" doc:"Volume behind it."`
	ReadOnly bool     `json:"readOnly" doc:"Whether it may only read."`
	Rules    []string `json:"rules" nullable:"false" doc:"QoS rules that apply, from the outside in."`
}

// WhySession is a session that the initiator has.
type WhySession struct {
	TSIH    int    `json:"tsih" doc:"Its number."`
	Target  string `json:"target,omitempty" doc:"iSCSI name of the target; absent: a discovery session."`
	User    string `json:"user,omitempty" doc:"GROUP/USER that it has proven to be."`
	Address string `json:"address" doc:"Address of the initiator."`
	Portal  string `json:"portal" doc:"Address of the server that it came in on."`
}

// WhyFailure is a login that was refused, redirected or broken off.
type WhyFailure struct {
	At      time.Time `json:"at" doc:"When."`
	Target  string    `json:"target,omitempty" doc:"What it asked for."`
	User    string    `json:"user,omitempty" doc:"CHAP user that it claimed."`
	Address string    `json:"address" doc:"Where it came from."`
	Portal  string    `json:"portal" doc:"Address of the server that it came in on."`
	Reason  string    `json:"reason" doc:"The true reason, which the initiator may not have been told."`
}

// Why asks what a login would come to.
func (c *Client) Why(ctx context.Context, q WhyQuery) (Why, error) {
	var w Why
	err := c.Get(ctx, q.Path(), &w)
	return w, err
}

// Path is where the query is asked.
func (q *WhyQuery) Path() string {
	values := url.Values{"initiator": {q.Initiator}, "target": {q.Target}}
	for key, value := range map[string]string{"address": q.Address, "user": q.User, "portal": q.Portal} {
		if value != "" {
			values.Set(key, value)
		}
	}
	return WhyPath + "?" + values.Encode()
}
