package cluster

import (
	"fmt"
	"strings"
)

// Keys has the keys of a cluster, all below /lunar/NAME/. Values are JSON objects with a
// member "version"; the packages that write them have their types.
type Keys struct{ prefix string }

// KeysOf returns the keys of the cluster name, which has no slash.
func KeysOf(name string) Keys { return Keys{"/lunar/" + name + "/"} }

// All is the prefix of all keys.
func (k Keys) All() string { return k.prefix }

// Nodes is the prefix of Node's keys.
func (k Keys) Nodes() string { return k.prefix + "nodes/" }

// Node is what a living node says of itself, with its lease.
func (k Keys) Node(node string) string { return k.Nodes() + node }

// NodeOf returns the node of a key of Node, and false for other keys.
func (k Keys) NodeOf(key string) (node string, ok bool) { return strings.CutPrefix(key, k.Nodes()) }

// Volumes is the prefix of all keys of volumes.
func (k Keys) Volumes() string { return k.prefix + "volumes/" }

// Owner is who owns a volume, without a lease: it outlives its node.
func (k Keys) Owner(volume string) string { return k.Volumes() + volume + "/owner" }

// OwnerOf returns the volume of a key of Owner, and false for other keys.
func (k Keys) OwnerOf(key string) (volume string, ok bool) {
	rest, below := strings.CutPrefix(key, k.Volumes())
	volume, owner := strings.CutSuffix(rest, "/owner")
	return volume, below && owner
}

// Heritage is what of a volume outlives its owner, without a lease.
func (k Keys) Heritage(volume string) string { return k.Volume(volume) + "heritage" }

// Header is the header of an encrypted volume, which has its key in wrapped form, without a
// lease.
func (k Keys) Header(volume string) string { return k.Volume(volume) + "header" }

// HeaderOf returns the volume of a key of Header, and false for other keys.
func (k Keys) HeaderOf(key string) (volume string, ok bool) {
	rest, below := strings.CutPrefix(key, k.Volumes())
	volume, header := strings.CutSuffix(rest, "/header")
	return volume, below && header
}

// Volume is the prefix of all keys of one volume.
func (k Keys) Volume(volume string) string { return k.Volumes() + volume + "/" }

// Forgotten is what has to be known of owners' records that were removed.
func (k Keys) Forgotten() string { return k.prefix + "forgotten" }

// Identity is what serials and NAA identifiers of all nodes derive from.
func (k Keys) Identity() string { return k.prefix + "identity" }

// Move is the request that a volume be moved to a node. The owner removes it.
func (k Keys) Move(volume string) string { return k.Volumes() + volume + "/move" }

// MoveOf returns the volume of a key of Move, and false for other keys.
func (k Keys) MoveOf(key string) (volume string, ok bool) {
	rest, below := strings.CutPrefix(key, k.Volumes())
	volume, move := strings.CutSuffix(rest, "/move")
	return volume, below && move
}

// Controller is who keeps the promise over all nodes, with its lease.
func (k Keys) Controller() string { return k.prefix + "controller" }

// Pulse is there while a node lives, with a lease that is shorter than that of Node.
func (k Keys) Pulse(node string) string { return k.prefix + "pulses/" + node }

// PulseOf returns the node of a key of Pulse, and false for other keys.
func (k Keys) PulseOf(key string) (node string, ok bool) {
	return strings.CutPrefix(key, k.prefix+"pulses/")
}

// Drain is there while a node is to have no volumes, living or not.
func (k Keys) Drain(node string) string { return k.prefix + "drains/" + node }

// DrainOf returns the node of a key of Drain, and false for other keys.
func (k Keys) DrainOf(key string) (node string, ok bool) {
	return strings.CutPrefix(key, k.prefix+"drains/")
}

// Severs is the prefix of the keys of Sever of one node that is asked.
func (k Keys) Severs(node string) string { return k.prefix + "severs/" + node + "/" }

// Sever is the request of a node that another one end what it has relayed to that.
func (k Keys) Sever(node, asker string) string { return k.Severs(node) + asker }

// Documents is the prefix of Document's keys.
func (k Keys) Documents() string { return k.prefix + "config/documents/" }

// Document is a revision of what the nodes' configurations have in common. Keys are in the
// order of revisions.
func (k Keys) Document(revision int64) string { return fmt.Sprintf("%s%010d", k.Documents(), revision) }

// Config is the prefix of the keys of Document, Proposal and Verdict.
func (k Keys) Config() string { return k.prefix + "config/" }

// Proposal is a document that is to be the next revision, with a lease of who asks for it.
func (k Keys) Proposal() string { return k.prefix + "config/proposal" }

// Verdicts is the prefix of Verdict's keys.
func (k Keys) Verdicts() string { return k.prefix + "config/verdicts/" }

// Verdict is what a node says to the proposal, with the lease of that.
func (k Keys) Verdict(node string) string { return k.Verdicts() + node }

// VerdictOf returns the node of a key of Verdict, and false for other keys.
func (k Keys) VerdictOf(key string) (node string, ok bool) {
	return strings.CutPrefix(key, k.Verdicts())
}
