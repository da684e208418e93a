package control

import "strconv"

// ofVolumes makes a metric of every volume.
func ofVolumes(value func(*Volume) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		for i := range s.Volumes {
			emit(value(&s.Volumes[i]), s.Volumes[i].Name)
		}
	}
}

// ofCached makes a metric of every cached volume.
func ofCached(value func(*VolumeCache) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		for i := range s.Volumes {
			if c := s.Volumes[i].Cache; c != nil {
				emit(value(c), s.Volumes[i].Name)
			}
		}
	}
}

// ofFussy makes a metric of every volume with fussy admission.
func ofFussy(value func(*Fussy) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		for i := range s.Volumes {
			if c := s.Volumes[i].Cache; c != nil && c.Fussy != nil {
				emit(value(c.Fussy), s.Volumes[i].Name)
			}
		}
	}
}

// healthNumbers are the values of lunar_volume_health.
var healthNumbers = map[string]float64{HealthOK: 0, HealthDegraded: 1, HealthFailed: 2}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var volumeLabels = []string{"volume"}

var volumeMetrics = []metric{
	{"lunar_volume_health", "", "Whether a volume's data are available and to be trusted: 0 ok, 1 degraded, 2 failed.", gauge, []string{"volume"},
		ofVolumes(func(v *Volume) float64 { return healthNumbers[v.Health.State] })},
	{"lunar_volume_info", "", "Always 1; the labels tell what a volume is.", gauge, []string{"volume", "type", "write"},
		func(s *Status, emit emitter) {
			for i := range s.Volumes {
				emit(1, s.Volumes[i].Name, s.Volumes[i].Type, s.Volumes[i].Write)
			}
		}},
	{"lunar_volume_size_bytes", "bytes", "Capacity of a volume.", gauge, volumeLabels,
		ofVolumes(func(v *Volume) float64 { return float64(v.SizeBytes) })},
	{"lunar_volume_reads_total", "", "Commands of all sessions that sent data to the initiator.", counter, volumeLabels,
		ofVolumes(func(v *Volume) float64 { return float64(v.IO.Reads) })},
	{"lunar_volume_writes_total", "", "Commands of all sessions that took data from the initiator.", counter, volumeLabels,
		ofVolumes(func(v *Volume) float64 { return float64(v.IO.Writes) })},
	{"lunar_volume_other_commands_total", "", "Commands of all sessions without data.", counter, volumeLabels,
		ofVolumes(func(v *Volume) float64 { return float64(v.IO.Others) })},
	{"lunar_volume_read_bytes_total", "bytes", "Data sent to initiators.", counter, volumeLabels,
		ofVolumes(func(v *Volume) float64 { return float64(v.IO.ReadBytes) })},
	{"lunar_volume_written_bytes_total", "bytes", "Data taken from initiators by commands that ended well.", counter, volumeLabels,
		ofVolumes(func(v *Volume) float64 { return float64(v.IO.WrittenBytes) })},
	{"lunar_volume_protection_made_anew_blocks", "blocks", "Blocks whose protection information was made anew after a crash when the volume was opened last; the log names them.", gauge, volumeLabels,
		ofVolumes(func(v *Volume) float64 { return float64(v.Anew) })},
	{"lunar_volume_cache_resident_bytes", "bytes", "Blocks of a volume in the cache; absent if it is not cached, like the others below.", gauge, volumeLabels,
		ofCached(func(c *VolumeCache) float64 { return float64(c.ResidentBytes) })},
	{"lunar_volume_cache_dirty_bytes", "bytes", "Data of a volume that its backing store does not have yet.", gauge, volumeLabels,
		ofCached(func(c *VolumeCache) float64 { return float64(c.DirtyBytes) })},
	{"lunar_volume_cache_hits_total", "", "Reads of a block, or of a part, that found all they wanted.", counter, volumeLabels,
		ofCached(func(c *VolumeCache) float64 { return float64(c.Hits) })},
	{"lunar_volume_cache_misses_total", "", "Reads of a block, or of a part, that did not.", counter, volumeLabels,
		ofCached(func(c *VolumeCache) float64 { return float64(c.Misses) })},
	{"lunar_volume_cache_throttled_writes_total", "", "Writes to a volume that had to wait for the dirty limit.", counter, volumeLabels,
		ofCached(func(c *VolumeCache) float64 { return float64(c.ThrottledWrites) })},
	{"lunar_volume_cache_flush_failing", "", "1 while dirty data of a volume cannot be written.", gauge, volumeLabels,
		ofCached(func(c *VolumeCache) float64 { return truth(c.FlushFailing) })},
	{"lunar_volume_fussy_partitions", "", "Partitions that run fussy admission for a volume; absent with lru, like the others below.", gauge, volumeLabels,
		ofFussy(func(f *Fussy) float64 { return float64(f.Partitions) })},
	{"lunar_volume_fussy_fallen_back", "", "Of them, those that admit everything now because the hit rate fell.", gauge, volumeLabels,
		ofFussy(func(f *Fussy) float64 { return float64(f.FallenBack) })},
	{"lunar_volume_fussy_switches_total", "", "Changes between fussy and lru in all partitions.", counter, volumeLabels,
		ofFussy(func(f *Fussy) float64 { return float64(f.Switches) })},
}

// ofSessions makes a metric of every session.
func ofSessions(value func(*Session) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		for i := range s.Sessions {
			n := &s.Sessions[i]
			emit(value(n), strconv.Itoa(n.TSIH), n.Initiator, n.Target)
		}
	}
}

// ofLUNs makes a metric of every LUN of every session.
func ofLUNs(value func(*IO) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		for i := range s.Sessions {
			n := &s.Sessions[i]
			for j := range n.LUNs {
				l := &n.LUNs[j]
				emit(value(&l.IO), strconv.Itoa(n.TSIH), n.Initiator, n.Target, strconv.Itoa(l.LUN), l.Volume)
			}
		}
	}
}

var (
	sessionLabels = []string{"tsih", "initiator", "target"}
	lunLabels     = []string{"tsih", "initiator", "target", "lun", "volume"}
)

var sessionMetrics = []metric{
	{"lunar_session_commands_in_flight", "", "Commands that a session has in flight.", gauge, sessionLabels,
		ofSessions(func(n *Session) float64 { return float64(n.InFlight) })},
	{"lunar_session_window_commands", "", "Commands that a session may have in flight.", gauge, sessionLabels,
		ofSessions(func(n *Session) float64 { return float64(n.Window) })},
	{"lunar_session_reads_total", "", "Commands of a session that sent data to the initiator.", counter, lunLabels,
		ofLUNs(func(io *IO) float64 { return float64(io.Reads) })},
	{"lunar_session_writes_total", "", "Commands of a session that took data from the initiator.", counter, lunLabels,
		ofLUNs(func(io *IO) float64 { return float64(io.Writes) })},
	{"lunar_session_other_commands_total", "", "Commands of a session without data.", counter, lunLabels,
		ofLUNs(func(io *IO) float64 { return float64(io.Others) })},
	{"lunar_session_read_bytes_total", "bytes", "Data sent to the initiator.", counter, lunLabels,
		ofLUNs(func(io *IO) float64 { return float64(io.ReadBytes) })},
	{"lunar_session_written_bytes_total", "bytes", "Data taken from the initiator by commands that ended well.", counter, lunLabels,
		ofLUNs(func(io *IO) float64 { return float64(io.WrittenBytes) })},
}
