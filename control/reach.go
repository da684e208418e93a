package control

// Reach is how volumes are reached through a portal group now, whatever the configuration
// says.
type Reach struct {
	Group    string        `json:"group" doc:"Name of the portal group."`
	States   []string      `json:"states" nullable:"false" doc:"Asymmetric access states: one, unless volumes have different ones."`
	Draining []PortalDrain `json:"draining" nullable:"false" doc:"What of it is drained; empty: nothing."`
}

// PortalDrain is a portal from which initiators are kept away.
type PortalDrain struct {
	Portal string `json:"portal,omitempty" doc:"Address and port; absent: all of the group."`
	To     string `json:"to,omitempty" doc:"Where logins are sent; absent: they are refused until later."`
}

// String is for a line.
func (d PortalDrain) String() string {
	what := "all"
	if d.Portal != "" {
		what = d.Portal
	}
	if d.To != "" {
		what += " to " + d.To
	}
	return what
}

// PortalGroupResource is a portal group with its part of the configuration.
type PortalGroupResource struct {
	ObjectResource
	Reach Reach `json:"reach" doc:"How volumes are reached through it now."`
}

// PortalGroupList is the answer of /v1/portal-groups.
type PortalGroupList struct {
	Objects []PortalGroupResource `json:"objects" nullable:"false" doc:"All of them, by name."`
}
