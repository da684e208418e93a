// Package fake is RDMA hardware inside the process, for tests: it implements
// iser/verbs between hosts of one Fabric and enforces what hardware enforces.
//
// Work on one QP is done in order; a READ may be under way while what follows
// it runs, completions come in the order of posting. Keys are checked for
// protection domain, bounds and rights. A message longer than its receive fails
// both ends. Slots of the queues are free again when a completion is polled, not
// before. On failure everything posted is flushed, unsignaled entries too. CQs
// notify once per Arm, through an eventfd. Memory is moved by a goroutine of the
// fabric, so the race detector sees software that touches what the hardware
// owns. Which QP or connection message goes next is drawn from a seeded
// generator, so EventEstablished may come before or after the first receive.
//
// What hardware would endure for a while, or punish only now and then, is a
// breach and fails the test: a message without a receive, more RDMA READs than
// were negotiated, a CQ that overflows, a key that must not be invalidated,
// objects destroyed in the wrong order or never.
package fake
