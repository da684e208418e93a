// Package places decides who gets one of a limited number of places, and who
// loses one to whom: connections in login, sessions, discovery sessions, clients
// of the control API. It is pure: it has no goroutine, lock or clock.
//
// A [Holder] takes places: an address, or somebody with a proven identity. While
// there are free places, a holder gets as many as it asks for. When there are none,
// a place beyond a holder's share goes to a holder that has less than its own share,
// and a place of a weaker [Class] to a stronger one. So no holder, and no network of
// holders, keeps others away, and nobody is turned away while there is room.
//
// [Buckets] bound how often somebody may do something, [Memory] reserves places for
// those who had one before a restart, and [Fair] shares what cannot be taken back.
// All tables are bounded, either by the places or by forgetting whoever was seen
// longest ago.
package places
