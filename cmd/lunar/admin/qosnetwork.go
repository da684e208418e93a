package admin

import (
	"fmt"
	"io"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/bytesize"
)

// renderConnections prints what their classes mean for connections on the network.
func renderConnections(w io.Writer, x *control.Explanation) {
	if len(x.Connections) > 0 {
		section(w, classedTable, x.Connections, "")
	}
}

// ifGoverned is a value of a connection that is governed.
func ifGoverned(value func(c *control.ClassedConnection) any) func(*control.ClassedConnection) any {
	return func(c *control.ClassedConnection) any {
		if c.GovernedBy == "none" {
			return nil
		}
		return value(c)
	}
}

// windowOrPace is what bounds a way of a connection.
func windowOrPace(window, pace int64) string {
	if pace > 0 {
		return bytesize.Text(pace) + "/s"
	}
	return bytesize.Text(window)
}

var classedTable = listing.Table[control.ClassedConnection]{
	{Name: "connection", Of: func(c *control.ClassedConnection) any { return c.Remote }},
	{Name: "class", Of: func(c *control.ClassedConnection) any { return c.Class }},
	{Name: "dscp", Of: func(c *control.ClassedConnection) any {
		if c.DSCP == 0 {
			return nil
		}
		return c.DSCP
	}},
	{Name: "congestion-control", Of: func(c *control.ClassedConnection) any { return c.Congestion }},
	{Name: "governed-by", Of: func(c *control.ClassedConnection) any { return c.GovernedBy }},
	{Name: "device", Of: ifGoverned(func(c *control.ClassedConnection) any { return c.Device })},
	{Name: "window", Of: ifGoverned(func(c *control.ClassedConnection) any { return windowOrPace(c.Window, c.Pace) })},
	{Name: "rate", Of: ifGoverned(func(c *control.ClassedConnection) any { return bytesize.Text(c.Rate) + "/s" })},
	{Name: "share", Of: ifGoverned(func(c *control.ClassedConnection) any { return bytesize.Text(c.Share) + "/s" })},
	{Name: "bottleneck", Of: ifGoverned(func(c *control.ClassedConnection) any { return bytesize.Text(c.Bottleneck) + "/s" })},
	{Name: "alpha", Of: ifGoverned(func(c *control.ClassedConnection) any { return fmt.Sprintf("%.2f", c.Alpha) })},
	{Name: "quality", Of: ifGoverned(func(c *control.ClassedConnection) any { return fmt.Sprintf("%.2f", c.Quality) })},
	{Name: "writes-asked", Of: func(c *control.ClassedConnection) any {
		if c.Asked == 0 && c.WritePace == 0 {
			return nil
		}
		return windowOrPace(c.Asked, c.WritePace)
	}},
}
