package target

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"lunar/internal/waits"
	"lunar/target/login"
	"lunar/target/pdu"
	"lunar/target/scsi"
	"lunar/target/scsi/relay"
)

// Relayed takes a message (package relay) of another server, which answer answers at some time:
// until then it must not change. Messages of one nexus come in order. It does not block; any
// goroutine may call it.
func (s *Server) Relayed(from RelayPeer, message []byte, answer func(body ...[]byte)) {
	if err := s.relayed(from, message, answer); err != nil {
		s.log.Error("a message of another node", "node", from.Node, "error", err)
		answerOutcome(answer, relay.NoNexus)
	}
}

func answerOutcome(answer func(...[]byte), o relay.Outcome) {
	answer((&relay.Answer{Outcome: o}).Append(nil))
}

func (s *Server) relayed(from RelayPeer, message []byte, answer func(body ...[]byte)) error {
	t, err := relay.TypeOf(message)
	if err != nil {
		return err
	}
	switch t {
	case relay.TypeBegin:
		var m relay.Begin
		if err = m.Parse(message); err == nil {
			s.beginRemote(from, &m, answer)
		}
	case relay.TypeEnd:
		var m relay.End
		if err = m.Parse(message); err == nil {
			s.remotes.find(from, m.Nexus).drop(func() { answerOutcome(answer, relay.Done) })
		}
	case relay.TypeExecute:
		r := newRemoteTask()
		if err = r.message.Parse(message); err == nil {
			r.begin(s.remotes.find(from, r.message.Nexus), answer)
		}
	case relay.TypeAbort:
		var m relay.Abort
		if err = m.Parse(message); err == nil {
			s.remotes.find(from, m.Nexus).abortTask(m.Task, answer)
		}
	case relay.TypeManage:
		var m relay.Manage
		if err = m.Parse(message); err == nil {
			s.remoteFunction(s.remotes.find(from, m.Nexus), pdu.TaskManagementFunction(m.Function), answer)
		}
	default:
		return s.moved(t, message, answer)
	}
	return err
}

// moved takes messages about data of commands that this server relays.
func (s *Server) moved(t relay.Type, message []byte, answer func(body ...[]byte)) error {
	switch t {
	case relay.TypeWant:
		var m relay.Want
		if err := m.Parse(message); err != nil {
			return err
		}
		if lu := s.sharedUnit(m.Volume); lu != nil {
			lu.Want(m, answer)
			return nil
		}
	case relay.TypePart:
		var m relay.Part
		if err := m.Parse(message); err != nil {
			return err
		}
		if lu := s.sharedUnit(m.Volume); lu != nil {
			lu.Part(m, answer)
			return nil
		}
	default:
		return fmt.Errorf("found a message of type %d, which is not known", t)
	}
	answer()
	return nil
}

// sharedUnit returns the logical unit of a volume that several servers present; nil: there is
// none.
func (s *Server) sharedUnit(volume string) *scsi.LogicalUnit {
	s.mu.Lock()
	defer s.mu.Unlock()
	for lu := range s.mu.homes {
		if lu.Name() == volume && lu.Shared() && !s.mu.removing[lu] {
			return lu
		}
	}
	return nil
}

// beginRemote makes a nexus, or has one that is there begin anew.
func (s *Server) beginRemote(from RelayPeer, m *relay.Begin, answer func(...[]byte)) {
	lu := s.sharedUnit(m.Volume)
	if lu == nil || lu.ServedElsewhere() || lu.Tenure() == 0 {
		answerOutcome(answer, relay.NotHere)
		return
	}
	tenure := lu.Tenure()
	known := s.remotes.find(from, m.Nexus)
	if known != nil && m.Again {
		known.cut(func() { answerOutcome(answer, relay.Done) })
		return
	}
	// Of the process that the node had before, and of a session that this one replaces.
	stale := s.remotes.of(func(n *remoteNexus) bool {
		return n == known || n.key.node == from.Node && (n.peer.Incarnation != from.Incarnation || n.is(m, lu))
	})
	gone := waits.New(func() {
		if !s.addRemote(from, m, lu, tenure) {
			answerOutcome(answer, relay.NotHere)
			return
		}
		answerOutcome(answer, relay.Done)
	})
	for _, n := range stale {
		gone.Add()
		n.drop(gone.Done)
	}
	gone.Done()
}

// addRemote makes a nexus of a tenure.
func (s *Server) addRemote(from RelayPeer, m *relay.Begin, lu *scsi.LogicalUnit, tenure uint64) bool {
	if !s.use(lu) {
		return false
	}
	home := s.groupOf(lu)
	n := &remoteNexus{
		node: s, all: &s.remotes, peer: from, key: remoteKey{from.Node, m.Nexus}, thread: home[int(m.Nexus)%len(home)], tasks: map[uint64]*remoteTask{},
		again: m.Again,
	}
	n.nexus = &scsi.Nexus{
		LU: lu, LUN: m.LUN, Holder: m.Holder, Initiator: m.Initiator, Target: m.Target, TargetTag: m.Tag, Remote: true, Tenure: tenure,
		Ports: func() []uint16 { return s.portsOf(m.Target) }, Audit: n.audit, EndTasks: n.endTasks, AwaitTasks: n.awaitTasks,
	}
	n.holder.away = true
	n.holder.host, _ = netip.ParseAddr(m.Holder)
	who := Initiator{Proof: login.Proof{Group: m.Group, User: m.User}}
	who.Name, _, _ = strings.Cut(m.Initiator, ",i,0x")
	if who.Proof.Proven() {
		n.nexus.Proven, n.holder = who.Proof, holderKey{proof: who.Proof, name: who.Name, away: true}
	}
	number, _ := scsi.DecodeLUN(m.LUN)
	n.flow = flowOf(&who, s.settings.Load().Owners, m.Target, number)
	n.nexus.ReadOnly.Store(m.ReadOnly)
	if !s.remotes.add(n) { // it was told of twice
		s.release([]*scsi.LogicalUnit{lu})
		return true
	}
	if lu.Tenure() != tenure { // which may have been before ForgetRelayed could find it
		n.drop(func() {})
		return false
	}
	return true
}

// portsOf is the tags of the portal groups that lead to a target, here and elsewhere.
func (s *Server) portsOf(target string) (tags []uint16) {
	s.mu.Lock()
	t := s.mu.targets[target]
	s.mu.Unlock()
	if t != nil {
		tags = slices.Clone(t.config.Load().PortalGroups)
	}
	for _, e := range s.elsewhere(target) {
		tags = append(tags, e.Tag)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

// remoteFunction carries out a task management function that another server relays.
func (s *Server) remoteFunction(n *remoteNexus, f pdu.TaskManagementFunction, answer func(...[]byte)) {
	if n == nil {
		answerOutcome(answer, relay.NoNexus)
		return
	}
	lu := n.nexus.LU
	if lu.ServedElsewhere() {
		answerOutcome(answer, relay.NotHere)
		return
	}
	ends := waits.New(func() { answerOutcome(answer, relay.Done) })
	defer ends.Done()
	if f == pdu.FunctionClearACA {
		ends.Add()
		n.post(func(n *remoteNexus) {
			defer ends.Done()
			n.abortAll(ends, func(t *remoteTask) bool { return t.cmd.Attribute == scsi.ACA })
			lu.ClearACA(n.nexus)
		})
		return
	}
	scope, known := scopes[f]
	if !known {
		return
	}
	units := []*scsi.LogicalUnit{lu}
	s.endTasksOn(units, ends)
	if scope.reset {
		s.endCopies(units, ends)
	}
	announce(scope, []*scsi.Nexus{n.nexus})
}

// endTasksOn ends all tasks of logical units.
func (s *Server) endTasksOn(units []*scsi.LogicalUnit, ends *waits.Waiter) {
	matches := func(t *task) bool { return t.lun != nil && slices.Contains(units, t.lun.nexus.LU) }
	for _, other := range s.sharing(nil, units) {
		ends.Add()
		other.state.post(func() {
			other.state.endMatching(ends, false, matches)
			ends.Done()
		})
	}
	s.endRemote(units, ends)
}

// endRemote implements node: it ends the tasks of logical units that were relayed to here.
func (s *Server) endRemote(units []*scsi.LogicalUnit, ends *waits.Waiter) {
	for _, n := range s.remotes.on(units) {
		ends.Add()
		n.endTasks(nil, ends.Done)
	}
}

// ForgetRelayed drops the nexuses of sessions at other servers: of a logical unit, that another
// one serves now; of a node, which has gone; nil and "": all. It calls then when nothing is under way of
// their commands.
func (s *Server) ForgetRelayed(lu *scsi.LogicalUnit, node string, then func()) {
	s.forget(func(n *remoteNexus) bool {
		return (lu == nil || n.nexus.LU == lu) && (node == "" || n.key.node == node)
	}, then)
}

// ForgetEarlier drops the nexuses of sessions at a node that were another process's than the one of an
// incarnation.
func (s *Server) ForgetEarlier(node, incarnation string) {
	s.forget(func(n *remoteNexus) bool { return n.key.node == node && n.peer.Incarnation != incarnation }, func() {})
}

func (s *Server) forget(which func(*remoteNexus) bool, then func()) {
	ends := waits.New(then)
	for _, n := range s.remotes.of(which) {
		ends.Add()
		n.drop(ends.Done)
	}
	ends.Done()
}
