package server

import (
	"strconv"

	"lunar/control"
)

// eachDevice has every backing device, if there are rules.
func eachDevice(s *control.Status, yield func(*control.Device, ...string)) {
	if s.QoS == nil {
		return
	}
	for i := range s.QoS.Capacity.Devices {
		yield(&s.QoS.Capacity.Devices[i], s.QoS.Capacity.Devices[i].Name)
	}
}

// eachThreadCapacity has every event thread, if there are rules.
func eachThreadCapacity(s *control.Status, yield func(*control.ThreadCapacity, ...string)) {
	if s.QoS == nil {
		return
	}
	for i := range s.QoS.Capacity.Threads {
		yield(&s.QoS.Capacity.Threads[i], s.QoS.Capacity.Threads[i].Name)
	}
}

// eachFlow calls f for every flow with its labels.
func eachFlow(s *control.Status, f func(flow *control.Flow, labels ...string)) {
	if s.QoS == nil {
		return
	}
	for i := range s.QoS.Flows {
		flow := &s.QoS.Flows[i]
		f(flow, flow.Initiator, flow.Target, strconv.FormatUint(flow.LUN, 10))
	}
}

// ofLatencies makes a histogram of every flow.
func ofLatencies(value func(*control.Flow) *control.Latency) func(*control.Status, func(*control.Latency, ...string)) {
	return func(s *control.Status, emit func(*control.Latency, ...string)) {
		eachFlow(s, func(f *control.Flow, labels ...string) { emit(value(f), labels...) })
	}
}

// eachPromise has everybody who has a reservation.
func eachPromise(s *control.Status, yield func(*control.Promised, ...string)) {
	if s.QoS == nil {
		return
	}
	for i := range s.QoS.Promises {
		p := &s.QoS.Promises[i]
		yield(p, p.Rule, p.Level, p.Name)
	}
}

var (
	flowLabels    = []string{"initiator", "target", "lun"}
	deviceLabels  = []string{"device"}
	onThreadLabel = []string{"thread"}
	promiseLabels = []string{"rule", "level", "name"}
)

var qosMetrics = []metric{
	{"lunar_qos_rules", "", "QoS rules in force. Without any, all of the following are absent.", gauge, nil,
		func(s *control.Status, emit emitter) {
			if s.QoS == nil {
				emit(0)
			} else {
				emit(float64(s.QoS.Rules))
			}
		}},
	{"lunar_qos_overcommitted", "", "1 while the reservations are more than the capacity.", gauge, nil,
		func(s *control.Status, emit emitter) {
			if s.QoS != nil {
				emit(truth(s.QoS.Capacity.Overcommitted))
			}
		}},
	{"lunar_qos_dispatches_total", "", "Commands that were let pass: by a token that is reserved, by one of what is left (normal), or without one (opportunistic).", counter, append(flowLabels, "token"),
		func(s *control.Status, emit emitter) {
			eachFlow(s, func(f *control.Flow, labels ...string) {
				for token, n := range map[string]int64{"reserved": f.Reserved, "normal": f.Normal, "opportunistic": f.Opportunistic} {
					emit(float64(n), append(labels, token)...)
				}
			})
		}},
	{"lunar_qos_throttled_seconds_total", "s", "Time in which commands waited for a limit of a rule, of commands (iops) or of bytes (bandwidth). It begins anew when the rules change.", counter, append(flowLabels, "rule", "limit"),
		func(s *control.Status, emit emitter) {
			eachFlow(s, func(f *control.Flow, labels ...string) {
				for i := range f.Rules {
					e := &f.Rules[i]
					emitLimit(e.Limit.IOPS, e.HeldIOPS, "iops", e.Rule, emit, labels)
					emitLimit(e.Limit.Bytes, e.HeldBandwidth, "bandwidth", e.Rule, emit, labels)
				}
			})
		}},
}

// emitLimit emits for how long a limit held commands back, if the rule has it.
func emitLimit(limit int64, held float64, unit, rule string, emit emitter, labels []string) {
	if limit > 0 {
		emit(held, append(labels, rule, unit)...)
	}
}

var qosDistributions = []distribution{
	{"lunar_qos_queue_seconds", "s", "Time from a command's arrival to its dispatch.", flowLabels,
		ofLatencies(func(f *control.Flow) *control.Latency { return &f.Queue })},
	{"lunar_qos_service_seconds", "s", "Time from a command's dispatch to its end.", flowLabels,
		ofLatencies(func(f *control.Flow) *control.Latency { return &f.Service })},
}
