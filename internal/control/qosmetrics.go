package control

import "strconv"

// distribution is a row of a table of histograms.
type distribution struct {
	name   string
	unit   string // for the documentation
	help   string
	labels []string
	each   func(s *Status, emit func(l *Latency, labels ...string))
}

// ofQoS makes a metric of the token scheduler, if there are rules.
func ofQoS(value func(*Explanation) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		if s.QoS != nil {
			emit(value(s.QoS))
		}
	}
}

// ofDevices makes a metric of every backing device.
func ofDevices(value func(*Device) int64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		if s.QoS == nil {
			return
		}
		for i := range s.QoS.Capacity.Devices {
			d := &s.QoS.Capacity.Devices[i]
			emit(float64(value(d)), d.Name)
		}
	}
}

// eachFlow calls f for every flow with its labels.
func eachFlow(s *Status, f func(flow *Flow, labels ...string)) {
	if s.QoS == nil {
		return
	}
	for i := range s.QoS.Flows {
		flow := &s.QoS.Flows[i]
		f(flow, flow.Initiator, flow.Target, strconv.FormatUint(flow.LUN, 10))
	}
}

// ofFlows makes a metric of every flow.
func ofFlows(value func(*Flow) int64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		eachFlow(s, func(f *Flow, labels ...string) { emit(float64(value(f)), labels...) })
	}
}

// ofLatencies makes a histogram of every flow.
func ofLatencies(value func(*Flow) *Latency) func(*Status, func(*Latency, ...string)) {
	return func(s *Status, emit func(*Latency, ...string)) {
		eachFlow(s, func(f *Flow, labels ...string) { emit(value(f), labels...) })
	}
}

// ofPromises makes a metric of everybody who has a reservation.
func ofPromises(value func(*Promised) int64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		if s.QoS == nil {
			return
		}
		for i := range s.QoS.Promises {
			p := &s.QoS.Promises[i]
			emit(float64(value(p)), p.Rule, p.Level, p.Name)
		}
	}
}

var (
	flowLabels    = []string{"initiator", "target", "lun"}
	deviceLabels  = []string{"device"}
	promiseLabels = []string{"rule", "level", "name"}
)

var qosMetrics = []metric{
	{"lunar_qos_rules", "", "QoS rules in force. Without any, all of the following are absent.", gauge, nil,
		func(s *Status, emit emitter) {
			if s.QoS == nil {
				emit(0)
			} else {
				emit(float64(s.QoS.Rules))
			}
		}},
	{"lunar_qos_capacity_tokens_per_second", "tokens/s", "What a backing device can do, as the scheduler sees it; 0: not known yet.", gauge, deviceLabels,
		ofDevices(func(d *Device) int64 { return d.Tokens })},
	{"lunar_qos_device_reserved_tokens_per_second", "tokens/s", "What is reserved of a backing device in this second, for those who use it.", gauge, deviceLabels,
		ofDevices(func(d *Device) int64 { return d.Reserved })},
	{"lunar_qos_overcommitted", "", "1 while the reservations are more than the capacity.", gauge, nil,
		ofQoS(func(x *Explanation) float64 { return truth(x.Capacity.Overcommitted) })},
	{"lunar_qos_offered_commands_total", "", "Commands of an initiator to a logical unit that came to the scheduler.", counter, flowLabels,
		ofFlows(func(f *Flow) int64 { return f.Offered })},
	{"lunar_qos_served_commands_total", "", "Those that have ended.", counter, flowLabels,
		ofFlows(func(f *Flow) int64 { return f.Served })},
	{"lunar_qos_offered_tokens_total", "tokens", "What the commands cost that came.", counter, flowLabels,
		ofFlows(func(f *Flow) int64 { return f.OfferedTokens })},
	{"lunar_qos_served_tokens_total", "tokens", "What the commands cost that have ended.", counter, flowLabels,
		ofFlows(func(f *Flow) int64 { return f.ServedTokens })},
	{"lunar_qos_served_bytes_total", "bytes", "Data of the commands that have ended.", counter, flowLabels,
		ofFlows(func(f *Flow) int64 { return f.ServedBytes })},
	{"lunar_qos_dispatches_total", "", "Commands that were let pass: by a token that is reserved, by one of what is left (normal), or without one (opportunistic).", counter, append(flowLabels, "token"),
		func(s *Status, emit emitter) {
			eachFlow(s, func(f *Flow, labels ...string) {
				for token, n := range map[string]int64{"reserved": f.Reserved, "normal": f.Normal, "opportunistic": f.Opportunistic} {
					emit(float64(n), append(labels, token)...)
				}
			})
		}},
	{"lunar_qos_cache_hits_total", "", "Commands that the cache served.", counter, flowLabels,
		ofFlows(func(f *Flow) int64 { return f.Hits })},
	{"lunar_qos_cancelled_commands_total", "", "Commands that were aborted while they waited.", counter, flowLabels,
		ofFlows(func(f *Flow) int64 { return f.Cancelled })},
	{"lunar_qos_waiting_commands", "", "Commands that wait for their turn.", gauge, flowLabels,
		ofFlows(func(f *Flow) int64 { return int64(f.Waiting) })},
	{"lunar_qos_throttled_seconds_total", "s", "Time in which commands waited for a limit of a rule, of commands (iops) or of bytes (bandwidth). It begins anew when the rules change.", counter, append(flowLabels, "rule", "limit"),
		func(s *Status, emit emitter) {
			eachFlow(s, func(f *Flow, labels ...string) {
				for i := range f.Rules {
					e := &f.Rules[i]
					emitLimit(e.Limit.IOPS, e.HeldIOPS, "iops", e.Rule, emit, labels)
					emitLimit(e.Limit.Bytes, e.HeldBandwidth, "bandwidth", e.Rule, emit, labels)
				}
			})
		}},
	{"lunar_qos_reservation_tokens_per_second", "tokens/s", "What is reserved for a group, an initiator, or an initiator's use of a logical unit (level nexus).", gauge, promiseLabels,
		ofPromises(func(p *Promised) int64 { return p.Reservation })},
	{"lunar_qos_reservation_periods_met_total", "", "Periods (of one second) in which the reservation was served in full, or as far as it was asked for.", counter, promiseLabels,
		ofPromises(func(p *Promised) int64 { return p.Met })},
	{"lunar_qos_reservation_periods_missed_total", "", "Periods in which it was not.", counter, promiseLabels,
		ofPromises(func(p *Promised) int64 { return p.Missed })},
}

// emitLimit emits for how long a limit held commands back, if the rule has it.
func emitLimit(limit int64, held float64, unit, rule string, emit emitter, labels []string) {
	if limit > 0 {
		emit(held, append(labels, rule, unit)...)
	}
}

var qosDistributions = []distribution{
	{"lunar_qos_queue_seconds", "s", "Time from a command's arrival to its dispatch.", flowLabels,
		ofLatencies(func(f *Flow) *Latency { return &f.Queue })},
	{"lunar_qos_service_seconds", "s", "Time from a command's dispatch to its end.", flowLabels,
		ofLatencies(func(f *Flow) *Latency { return &f.Service })},
}
