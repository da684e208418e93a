package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
)

// roles are the least that somebody has to be for each operation. Read is what changes
// nothing; Operate changes what lasts until the next start and no data; all else is the
// administrator's.
var roles = map[string]control.Role{
	"get/status":           control.Read,
	"get/sessions":         control.Read,
	"get/cache":            control.Read,
	"get/latency":          control.Read,
	"get-overview":         control.Read,
	"get/qos":              control.Read,
	"get-qos-explain":      control.Read,
	"get-qos-cluster":      control.Read,
	"get-events":           control.Read,
	"get-why":              control.Read,
	"get/alua":             control.Read,
	"get/reservations":     control.Read,
	"get-cluster":          control.Read,
	"get/config":           control.Read,
	"get-cluster-config":   control.Read,
	"get-cluster-revision": control.Read,
	"get/drain":            control.Read,
	"get/generations":      control.Read,
	"get-generation":       control.Read,
	"get-alua-group":       control.Read,
	"get-qos-rule":         control.Read,
	"get-jobs":             control.Read,
	"get-job":              control.Read,
	"get-snapshots":        control.Read,

	"post-kick":       control.Operate,
	"post-trace":      control.Operate,
	"post-drain":      control.Operate,
	"post-rescan":     control.Operate,
	"post-resync":     control.Operate,
	"post-scrub":      control.Operate,
	"post-freeze":     control.Operate,
	"post-thaw":       control.Operate,
	"put-qos":         control.Operate,
	"put-qos-rule":    control.Operate,
	"patch-qos-rule":  control.Operate,
	"delete-qos-rule": control.Operate,
	"patch-alua":      control.Operate,
	"delete-job":      control.Operate, // of whoever could have asked for it
	"post-checksum":   control.Operate,
	"post-snapshot":   control.Operate,

	"post-cluster-move":   control.Operate,
	"post-cluster-drain":  control.Operate,
	"post-cluster-fence":  control.Admin,
	"post-cluster-config": control.Admin,

	"post-apply":         control.Admin,
	"post-send":          control.Admin,
	"post-receive":       control.Admin,
	"clear-reservations": control.Admin,
	"post-detach":        control.Admin,
	"post-changes":       control.Admin,
	"post-rollback":      control.Admin,
	"post-save":          control.Admin,

	"delete-snapshot":        control.Admin,
	"post-snapshot-clone":    control.Admin,
	"post-snapshot-rollback": control.Admin,
}

// objectRoles are those of the operations on objects of the configuration, by verb; all
// changes of these are the administrator's.
var objectRoles = map[string]control.Role{
	"get": control.Read, "list": control.Read, "put": control.Admin, "patch": control.Admin, "delete": control.Admin,
}

// roleOf is the least that somebody has to be for an operation.
func roleOf(id string) (needs control.Role, known bool) {
	if needs, known = roles[id]; known {
		return needs, true
	}
	verb, object, _ := strings.Cut(id, "-")
	if !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == object }) {
		return control.Admin, false
	}
	needs, known = objectRoles[verb]
	return needs, known
}

// permits lets an operation through for those whose role allows it. One that roles does
// not list is the administrator's.
func permits(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		needs, known := roleOf(ctx.Operation().OperationID)
		if !known {
			needs = control.Admin
		}
		c := callerOf(ctx.Context())
		if s := standingOf(ctx.Context()); s != nil {
			s.needs = needs
		}
		if c.Role >= needs {
			next(ctx)
			return
		}
		// The client may have gone.
		_ = huma.WriteErr(api, ctx, http.StatusForbidden, fmt.Sprintf("found %s with role %s, expected role %s", c, c.Role, needs))
	}
}
