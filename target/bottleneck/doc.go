// Package bottleneck is what governed connections share: the network devices that they leave
// through, with the bottleneck behind each and what each class should get of it. TCP's
// governor (target/tcp) and iSER's (iser) count their connections in the same Links, so that
// both kinds share a device that carries both. What comes in through a device is another
// bottleneck than what goes out.
//
// Links may be used by all event threads: their locks are held for a few additions, a few
// times per round trip of a connection.
package bottleneck
