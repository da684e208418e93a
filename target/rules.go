package target

import "lunar/scheduler"

// SetQoS puts a policy into force on all event threads before it returns.
// Sessions, and commands that wait, are not touched but for the rates that they
// get. After Shutdown there is nothing left that it could rule.
func (s *Server) SetQoS(p *scheduler.Policy) { s.qos.set(p) }

// SetCapacities says what devices can do, in tokens/s by name, 0 if it is to be
// learnt: it counts for those that come from now on, and at once for those of
// which something else was said before.
func (s *Server) SetCapacities(tokens map[string]int64) { s.qos.setCapacities(tokens) }

// QoSPolicy is the policy in force.
func (s *Server) QoSPolicy() *scheduler.Policy { return s.qos.policy() }

// ReportQoS fills what the coordinator over all nodes is to know of this server
// (QoS.Coordinator.Above).
func (s *Server) ReportQoS(r *scheduler.GateReport) { s.qos.report(r) }

// GrantQoS puts a grant of that coordinator into force, which keeps it.
func (s *Server) GrantQoS(g *scheduler.NodeGrant) { s.qos.obey(g) }

// SetQoSNodes says how many nodes share the limits while no grant is in force.
func (s *Server) SetQoSNodes(n int) { s.qos.setNodes(n) }

// QoS says what the scheduler does for an initiator; an empty name is all. After
// Shutdown it has no flows.
func (s *Server) QoS(initiator string) QoSStatus { return s.qos.status(initiator) }
