package server

import (
	"strconv"
	"time"

	"lunar/control"
)

func eachVolume(s *control.Status, yield func(*control.Volume, ...string)) {
	for i := range s.Volumes {
		yield(&s.Volumes[i], s.Volumes[i].Name)
	}
}

func eachVolumeIO(s *control.Status, yield func(*control.IO, ...string)) {
	for i := range s.Volumes {
		yield(&s.Volumes[i].IO, s.Volumes[i].Name)
	}
}

// eachMirror has the volumes that are mirrors.
func eachMirror(s *control.Status, yield func(*control.Mirror, ...string)) {
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Mirror != nil {
			yield(v.Mirror, v.Name)
		}
	}
}

// eachExcess has the volumes with a device for writes in excess.
func eachExcess(s *control.Status, yield func(*control.Excess, ...string)) {
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Excess != nil {
			yield(v.Excess, v.Name)
		}
	}
}

// eachSnapshots has the volumes with snapshots, or a schedule of them.
func eachSnapshots(s *control.Status, yield func(*control.VolumeSnapshots, ...string)) {
	for i := range s.Volumes {
		if v := &s.Volumes[i]; v.Snapshots != nil {
			yield(v.Snapshots, v.Name)
		}
	}
}

// eachCached has what the cache knows of every volume that it caches.
func eachCached(s *control.Status, yield func(*control.VolumeCache, ...string)) {
	for i := range s.Volumes {
		if c := s.Volumes[i].Cache; c != nil {
			yield(c, s.Volumes[i].Name)
		}
	}
}

// eachFussy has the state of every volume with fussy admission.
func eachFussy(s *control.Status, yield func(*control.Fussy, ...string)) {
	eachCached(s, func(c *control.VolumeCache, labels ...string) {
		if c.Fussy != nil {
			yield(c.Fussy, labels...)
		}
	})
}

// healthNumbers are the values of lunar_volume_health.
var healthNumbers = map[string]float64{control.HealthOK: 0, control.HealthDegraded: 1, control.HealthFailed: 2}

var volumeLabels = []string{"volume"}

var volumeMetrics = []metric{
	{"lunar_volume_health", "", "Whether a volume's data are available and to be trusted: 0 ok, 1 degraded, 2 failed.", gauge, volumeLabels,
		func(s *control.Status, emit emitter) {
			eachVolume(s, func(v *control.Volume, labels ...string) { emit(healthNumbers[v.Health.State], labels...) })
		}},
	{"lunar_volume_frozen", "", "1 while the commands of a volume are held (lunar volume freeze).", gauge, volumeLabels,
		func(s *control.Status, emit emitter) {
			eachVolume(s, func(v *control.Volume, labels ...string) {
				frozen := 0.0
				if v.Frozen != nil {
					frozen = 1
				}
				emit(frozen, labels...)
			})
		}},
	{"lunar_volume_thaw_seconds", "s", "Time until a frozen volume thaws by itself.", gauge, volumeLabels,
		func(s *control.Status, emit emitter) {
			eachVolume(s, func(v *control.Volume, labels ...string) {
				if v.Frozen != nil {
					emit(max(0, time.Until(v.Frozen.Until).Seconds()), labels...)
				}
			})
		}},
	{"lunar_volume_info", "", "Always 1; the labels tell what a volume is.", gauge, []string{"volume", "type", "write"},
		func(s *control.Status, emit emitter) {
			for i := range s.Volumes {
				emit(1, s.Volumes[i].Name, s.Volumes[i].Type, s.Volumes[i].Write)
			}
		}},
}

func eachSession(s *control.Status, yield func(*control.Session, ...string)) {
	for i := range s.Sessions {
		n := &s.Sessions[i]
		yield(n, strconv.Itoa(n.TSIH), n.Initiator, n.Target)
	}
}

// eachLUN has what every session does with each of its LUNs.
func eachLUN(s *control.Status, yield func(*control.IO, ...string)) {
	for i := range s.Sessions {
		n := &s.Sessions[i]
		for j := range n.LUNs {
			l := &n.LUNs[j]
			yield(&l.IO, strconv.Itoa(n.TSIH), n.Initiator, n.Target, strconv.Itoa(l.LUN), l.Volume)
		}
	}
}

var (
	sessionLabels = []string{"tsih", "initiator", "target"}
	lunLabels     = []string{"tsih", "initiator", "target", "lun", "volume"}
)
