package server

import "lunar/control"

func eachIncidents(s *control.Status, yield func(*control.Incidents, ...string)) {
	if s.Incidents != nil {
		yield(s.Incidents)
	}
}

func eachApply(s *control.Status, yield func(*control.LastApply, ...string)) {
	if s.LastApply != nil {
		yield(s.LastApply)
	}
}

func eachMoves(s *control.Status, yield func(*control.Moves, ...string)) { yield(&s.Moves) }

func eachSpace(s *control.Status, yield func(*control.Space, ...string)) {
	for i := range s.Volumes {
		if s.Volumes[i].Space != nil {
			yield(s.Volumes[i].Space, s.Volumes[i].Name)
		}
	}
}

var incidentMetrics = []metric{
	{"lunar_scsi_errors_total", "", "Commands that ended with CHECK CONDITION, by sense key and additional sense code (four hexadecimal digits).", counter, []string{"key", "asc"},
		func(s *control.Status, emit emitter) {
			eachIncidents(s, func(n *control.Incidents, _ ...string) {
				for _, c := range n.Sense {
					emit(float64(c.Count), c.Key, c.ASC)
				}
			})
		}},
	{"lunar_task_management_total", "", "Task management that initiators asked for: aborts and resets, by function.", counter, []string{"function"},
		func(s *control.Status, emit emitter) {
			eachIncidents(s, func(n *control.Incidents, _ ...string) {
				for _, c := range n.Functions {
					emit(float64(c.Count), c.Function)
				}
			})
		}},
	{"lunar_config_last_apply_timestamp_seconds", "s", "Unix time of the last try to change the configuration, by a file or by objects; absent if there was none.", gauge, nil,
		func(s *control.Status, emit emitter) {
			eachApply(s, func(a *control.LastApply, _ ...string) { emit(float64(a.At.UnixMilli()) / 1000) })
		}},
	{"lunar_volume_store_errors_total", "", "Operations of commands that a volume's store has failed since it was opened.", counter, []string{"volume", "operation"},
		func(s *control.Status, emit emitter) {
			for i := range s.Volumes {
				for _, e := range s.Volumes[i].Errors {
					emit(float64(e.Count), s.Volumes[i].Name, e.Operation)
				}
			}
		}},
}
