// Package places decides who gets one of a limited number of places, and who
// loses one to whom: connections in login, sessions, discovery sessions, clients
// of the control API. It is pure: it has no goroutine, lock or clock.
//
// Places are taken by a [Holder]: an address, or somebody who has proven who he
// is. As long as there are free places a holder gets as many as he asks for.
// When there are none, a place that a holder has beyond his share goes to one
// who has less than his, and one of a weaker [Class] to one of a stronger. So no
// holder, and no network of holders, keeps others away, and nobody is turned
// away while there is room.
//
// [Buckets] bound how often somebody may do something, [Memory] keeps places for
// those who had one before a restart, and [Fair] shares what cannot be taken
// back. All tables are bounded: by the places, or by forgetting who was seen
// longest ago.
package places
