package admin

import (
	"fmt"
	"slices"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/bytesize"
)

// sessionRow is a session's use of one LUN; a discovery session has none.
type sessionRow struct {
	*control.Session
	lun *control.SessionLUN
}

// sessionRows are the rows of all LUNs of sessions.
func sessionRows(sessions []control.Session) (rows []sessionRow) {
	for i := range sessions {
		n := &sessions[i]
		for j := range n.LUNs {
			rows = append(rows, sessionRow{n, &n.LUNs[j]})
		}
		if len(n.LUNs) == 0 {
			rows = append(rows, sessionRow{n, nil})
		}
	}
	return rows
}

// sessionsOf are the sessions of rows, each once.
func sessionsOf(rows []sessionRow) []control.Session {
	out := []control.Session{}
	for _, r := range rows {
		if !slices.ContainsFunc(out, func(n control.Session) bool { return n.TSIH == r.TSIH }) {
			out = append(out, *r.Session)
		}
	}
	return out
}

var sessionTable = listing.Table[sessionRow]{
	{Name: "session", Of: func(r *sessionRow) any { return r.TSIH }},
	{Name: "initiator", Of: func(r *sessionRow) any { return r.Initiator }},
	{Name: "user", Of: func(r *sessionRow) any { return r.User }, Wide: true},
	{Name: "address", Of: func(r *sessionRow) any { return r.Address }},
	{Name: "by", Of: func(r *sessionRow) any { return r.Transport }},
	{Name: "target", Of: func(r *sessionRow) any {
		if r.Target == "" {
			return "(discovery)"
		}
		return r.Target
	}},
	{Name: "lun", Of: ofLUN(func(l *control.SessionLUN) any { return l.LUN })},
	{Name: "volume", Of: ofLUN(func(l *control.SessionLUN) any { return l.Volume })},
	{Name: "rights", Of: ofLUN(func(l *control.SessionLUN) any { return rights(l.ReadOnly) }), Wide: true},
	{Name: "thread", Of: func(r *sessionRow) any { return r.Thread }},
	{Name: "in-flight", Of: func(r *sessionRow) any { return fmt.Sprintf("%d/%d", r.InFlight, r.Window) }},
	{Name: "reads", Of: ofLUN(func(l *control.SessionLUN) any { return l.IO.Reads }), Counts: true},
	{Name: "read", Of: ofLUN(func(l *control.SessionLUN) any { return listing.Bytes(l.IO.ReadBytes) }), Counts: true},
	{Name: "writes", Of: ofLUN(func(l *control.SessionLUN) any { return l.IO.Writes }), Counts: true},
	{Name: "written", Of: ofLUN(func(l *control.SessionLUN) any { return listing.Bytes(l.IO.WrittenBytes) }), Counts: true},
}

func ofLUN(of func(*control.SessionLUN) any) func(*sessionRow) any {
	return func(r *sessionRow) any {
		if r.lun == nil {
			return nil
		}
		return of(r.lun)
	}
}

// rights says what may be done with a LUN.
func rights(readOnly bool) string {
	if readOnly {
		return "read"
	}
	return "read, write"
}

// connectionRow is one connection of a session.
type connectionRow struct {
	session int
	*control.SessionConnection
}

func connectionRows(sessions []control.Session) (rows []connectionRow) {
	for i := range sessions {
		for j := range sessions[i].Connections {
			rows = append(rows, connectionRow{sessions[i].TSIH, &sessions[i].Connections[j]})
		}
	}
	return rows
}

var connectionTable = listing.Table[connectionRow]{
	{Name: "session", Of: func(r *connectionRow) any { return r.session }},
	{Name: "connection", Of: func(r *connectionRow) any { return r.CID }},
	{Name: "address", Of: func(r *connectionRow) any { return r.Address }},
	{Name: "portal", Of: func(r *connectionRow) any { return r.Portal }},
	{Name: "by", Of: func(r *connectionRow) any { return r.Transport }},
	{Name: "thread", Of: func(r *connectionRow) any { return r.Thread }},
	{Name: "state", Of: func(r *connectionRow) any { return r.State }},
	{Name: "read", Of: func(r *connectionRow) any { return listing.Bytes(r.ReadBytes) }},
	{Name: "written", Of: func(r *connectionRow) any { return listing.Bytes(r.WrittenBytes) }},
}

var threadTable = listing.Table[control.Thread]{
	{Name: "thread", Of: func(t *control.Thread) any { return t.Name }},
	{Name: "cpu", Of: func(t *control.Thread) any { return number(t.CPU) }},
	{Name: "node", Of: func(t *control.Thread) any { return number(t.Node) }},
	{Name: "connections", Of: func(t *control.Thread) any { return t.Connections }},
	{Name: "busy", Of: func(t *control.Thread) any {
		if t.RunSeconds == 0 {
			return listing.Share(0)
		}
		return listing.Share(t.BusySeconds / t.RunSeconds)
	}},
	{Name: "looks", Of: func(t *control.Thread) any { return t.Looks }, Counts: true},
	{Name: "empty", Of: func(t *control.Thread) any { return t.LooksInVain }, Counts: true},
	{Name: "hand-overs", Of: func(t *control.Thread) any { return t.Handovers }, Counts: true},
	{Name: "buffers", Of: func(t *control.Thread) any {
		return bytesize.Text(t.BufferUsedBytes) + " of " + bytesize.Text(t.BufferBytes)
	}},
}

// number shows -1 as none.
func number(n int) any {
	if n < 0 {
		return nil
	}
	return n
}
