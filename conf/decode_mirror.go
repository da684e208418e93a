package conf

import (
	"strconv"
	"time"
)

// What a mirror has unless it says otherwise.
const (
	defaultHeld   = 64 * MiB
	defaultWindow = time.Second
)

// defaultExcess is the size of a device for writes in excess that is made.
const defaultExcess = GiB

// volumePath is one path of several.
func volumePath(to *string) setter { return text(to, "a path", validPath) }

// fitsWindows checks the keys of mirrors and of writes in excess, and fills in what they
// leave out.
func (d *decoder) fitsWindows(n node, v *Volume) {
	if v.Type == MirrorVolume {
		d.require(n, "members", "the paths of two files or devices")
		if d.has(n, "members") && len(v.Members) != 2 {
			d.fail(n.path+".members", strconv.Itoa(len(v.Members))+" paths", "two of them")
		}
		if len(v.Members) == 2 && v.Members[0] == v.Members[1] {
			d.fail(n.path+".members", "one path twice", "two files or devices, best on different disks")
		}
		if v.Map == "" {
			v.Map = v.Name + ".map"
		}
		if v.Held == 0 {
			v.Held = defaultHeld
		}
		if v.Window == 0 {
			v.Window = defaultWindow
		}
	}
	if v.Excess == "" {
		for _, key := range []string{"excess-size", "excess-writes"} {
			if d.has(n, key) {
				d.fail(n.path+"."+key, "it without excess", "excess: PATH beside it")
			}
		}
		return
	}
	if v.ExcessSize == 0 {
		v.ExcessSize = defaultExcess
	}
	if v.ReadOnly {
		d.fail(n.path+".excess", "it beside read-only", "one of them")
	}
}
