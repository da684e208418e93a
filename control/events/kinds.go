package events

import (
	"maps"
	"slices"

	"lunar/control"
)

// Kinds are all that an event may be of, sorted.
func Kinds() []string {
	all := append(slices.Collect(maps.Values(kinds)), control.Lost, control.End)
	slices.Sort(all)
	return slices.Compact(all)
}

// kinds are the messages of the log that are events.
var kinds = map[string]string{
	"session opened": "login",
	"login failed":   "login-refused",
	"CHAP failed":    "login-refused",
	"connection refused: too many are in login, or the server is closing": "login-refused",
	"lines of one address were held back":                                 "login-refused",
	"lines of further addresses were held back":                           "login-refused",
	"session closed":                    "logout",
	"connection opened":                 "login",
	"login redirected":                  "login-refused",
	"connection closed":                 "logout",
	"session dropped":                   "logout",
	"initiator asked to log out":        "kick",
	"change":                            "change",
	"job begun":                         "job",
	"control API refused":               "access-refused",
	"a change is not in the audit file": "audit",
	"an administrator has cleared the reservations of a volume: hosts that were fenced off may write again": "reservations-cleared",
	"a reservation is missed":                                   "throttling",
	"a reservation is met again":                                "throttling",
	"reservations are more than the capacity":                   "throttling",
	"health of a volume":                                        "health",
	"backing store failed":                                      "store-error",
	"write-back failed: flushes of this store fail from now on": "flush-failed",
	"dirty data could not be written: they stay in the cache, writes go through": "flush-failed",
	"dirty data are being written again":                                         "flush-recovered",
	"the soft threshold of a thin provisioned volume is reached":                 "space",
	"a volume is being sent":                                                     "move",
	"a volume is being received":                                                 "move",
	"volume sent":                                                                "move",
	"volume received":                                                            "move",
	"a volume was not sent":                                                      "move",
	"a volume was not received":                                                  "move",
	"a volume that is being received is not whole: the sender may go on":         "move",
	"snapshot made":                                                              "snapshot",
	"snapshot deleted":                                                           "snapshot",
	"snapshot cloned":                                                            "snapshot",
	"volume rolled back":                                                         "rollback",
	"a scheduled snapshot was not made":                                          "snapshot-failed",
	"volumes frozen":                                                             "freeze",
	"volumes thawed":                                                             "freeze",
	"a mirror's member has failed: it goes on with the other":                    "mirror-degraded",
	"a mirror's member is missing: it goes on with the other":                    "mirror-degraded",
	"a mirror's member could not be read: the other one has the data, and they are written anew":   "mirror-degraded",
	"a mirror's member could not be read: it gets what the other one has":                          "mirror-degraded",
	"a mirror's members differ: nobody knows which one is right":                                   "mirror-differs",
	"a mirror's members do not differ any more":                                                    "mirror-resync",
	"a mirror's leader could not be read: its other member stays behind":                           "mirror-degraded",
	"a mirror's member is back: it is resynchronised":                                              "mirror-resync",
	"a mirror's member is resynchronised":                                                          "mirror-resync",
	"a mirror's members are alike":                                                                 "mirror-resync",
	"a fast device fails: what it has cannot be written back":                                      "store-error",
	"writes in excess could not be written back: they stay on the fast device":                     "flush-failed",
	"this node owns a volume":                                                                      "cluster",
	"a volume was closed for its next owner":                                                       "cluster",
	"this node could not open a volume, and is not to own it":                                      "cluster",
	"this node can open a volume again":                                                            "cluster",
	"earlier owners of a volume are fenced":                                                        "cluster",
	"a step of a volume's ownership has failed":                                                    "cluster",
	"etcd does not renew this node's lease: it takes no volumes over, and reads pass its cache by": "cluster",
	"the cluster's configuration is in force":                                                      "cluster",
	"the cluster's configuration is not in force on this node":                                     "cluster",
	"etcd renews this node's lease again":                                                          "cluster",
	"this node has its place in its cluster":                                                       "cluster",
	"there is no link to another node":                                                             "cluster",
	"there is a link to another node again":                                                        "cluster",
	"this node keeps the promise over all nodes":                                                   "cluster",
	"this node does not keep the promise over all nodes any more":                                  "cluster",
	"this node has no place in its cluster: it takes no volumes over, and reads pass its cache by": "cluster",
	"volume opened anew":                                                                           "volume",
	"volume closed":                                                                                "volume",
	"volume given up":                                                                              "volume",
	"a volume that was removed cannot be closed, and is tried again; lunar detach gives it up":     "volume",
	"ready":   "server",
	"stopped": "server",
}
