package daemon

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"lunar/control"
	"lunar/control/server"
	"lunar/scheduler"
	"lunar/target"
)

// The words of the governors.
var governorWords = map[scheduler.Governor]string{scheduler.NoGovernor: "false", scheduler.ServerGovernor: "true", scheduler.KernelGovernor: "kernel"}

// shownNetwork is what classes are outside of the server, in the API's terms.
func shownNetwork(n *scheduler.Network) control.Network {
	out := control.Network{DSCP: map[string]int{}, GroupNumbers: map[string]string{}, Governor: governorWords[n.Governor]}
	for class, code := range n.DSCP {
		if code > 0 {
			out.DSCP[classWords[scheduler.Class(class)]] = int(code)
		}
	}
	for number, tag := range n.Groups {
		if class, named := tag.Class(); named {
			out.GroupNumbers[strconv.Itoa(number)] = classWords[class]
		}
	}
	return out
}

// shownClasses are the classes of connections in the API's terms.
func shownClasses(all []target.ConnectionClass) []control.ClassedConnection {
	out := []control.ClassedConnection{}
	for i := range all {
		c := &all[i]
		out = append(out, control.ClassedConnection{
			Initiator: server.Sayable(c.Initiator), Target: c.Target, Remote: c.Remote.String(),
			Class: classWords[c.Class], DSCP: int(c.DSCP), Congestion: c.Congestion,
			GovernedBy: cmp.Or(c.Form, "none"), Device: c.Device, Window: c.Window, Alpha: c.Alpha, Quality: c.Quality,
			Rate: c.Rate, Share: c.Governance.Target, Bottleneck: c.Estimate, Asked: c.Pacing.Window,
			Pace: c.Pace, WritePace: c.Pacing.Pace,
		})
	}
	slices.SortFunc(out, func(a, b control.ClassedConnection) int {
		return cmp.Or(strings.Compare(a.Initiator, b.Initiator), strings.Compare(a.Target, b.Target), strings.Compare(a.Remote, b.Remote))
	})
	return out
}
