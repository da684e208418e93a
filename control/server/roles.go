package server

import "lunar/control"

// roles are the least that somebody has to be for each operation. Read is what changes
// nothing; Operate changes what lasts until the next start and no data; all else is the
// administrator's.
var roles = map[string]control.Role{
	"get/status":       control.Read,
	"get/sessions":     control.Read,
	"get/volumes":      control.Read,
	"get/cache":        control.Read,
	"get/qos":          control.Read,
	"get-qos-explain":  control.Read,
	"get/alua":         control.Read,
	"get/reservations": control.Read,
	"get/config":       control.Read,

	"post-kick":       control.Operate,
	"post-drain":      control.Operate,
	"post-rescan":     control.Operate,
	"put-qos":         control.Operate,
	"put-qos-rule":    control.Operate,
	"patch-qos-rule":  control.Operate,
	"delete-qos-rule": control.Operate,
	"patch-alua":      control.Operate,

	"post-apply":         control.Admin,
	"clear-reservations": control.Admin,
	"post-detach":        control.Admin,
}
