package daemon

import (
	"slices"
	"strings"

	"lunar/conf"
)

// checkCHAP names the auth-groups whose users a man in the middle can have prove
// themselves by MD5 although they know stronger algorithms: nothing protects the list
// that an initiator offers.
func checkCHAP(cfg *conf.Config) (notes []string) {
	for i := range cfg.AuthGroups {
		g := &cfg.AuthGroups[i]
		stronger := slices.DeleteFunc(slices.Clone(g.Algorithms), func(name string) bool { return name == "md5" })
		if len(g.CHAP) == 0 || len(stronger) == 0 || len(stronger) == len(g.Algorithms) {
			continue
		}
		notes = append(notes, conf.Key("auth-groups", g.Name, "algorithms")+": found md5 beside "+strings.Join(stronger, ", ")+
			": a man in the middle can have MD5 chosen for a user who has proven nothing stronger since the start; leave md5 out, and give initiators that have no other a group with algorithms: [md5]")
	}
	return notes
}
