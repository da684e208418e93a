package daemon

import (
	"errors"
	"time"

	"lunar/control"
)

// noteChange is noteApply for a change of objects. Mistakes in it are told to who asks, and
// concern nobody else.
func (d *daemon) noteChange(dry bool, err error) {
	var r *control.Refusal
	if !dry && (!errors.As(err, &r) || r.State) {
		d.noteApply(err)
	}
}

// noteApply remembers how a try to change the configuration ended.
func (d *daemon) noteApply(err error) {
	d.lastApply.Store(&control.LastApply{OK: err == nil, At: time.Now()})
}
