package member

import (
	"testing"

	"lunar/cluster/etcd"
)

// TestNext: what a member does for its upkeep.
func TestNext(t *testing.T) {
	const own, other = 1, 2
	alarm := func(of uint64) []etcd.Alarm { return []etcd.Alarm{{Member: of, Kind: etcd.NoSpace}} }
	for name, c := range map[string]struct {
		size, inUse int64 // MiB
		alarms      []etcd.Alarm
		reclaimed   int64
		want        step
	}{
		"nothing":                              {10, 10, nil, 0, rest},
		"half empty, small":                    {60, 10, nil, 0, rest},
		"half empty":                           {100, 10, nil, 0, defragment},
		"its own alarm":                        {256, 10, alarm(own), 0, reclaim},
		"another's alarm":                      {10, 10, alarm(other), 0, reclaim},
		"reclaimed, room again":                {10, 10, alarm(own), 5, disarm},
		"reclaimed, room here, not elsewhere":  {10, 10, alarm(other), 5, rest},
		"reclaimed, no room":                   {256, 250, alarm(own), 5, tellFull},
		"no room, something was deleted since": {256, 250, alarm(own), 4, reclaim},
		"damage is no want of space":           {10, 10, []etcd.Alarm{{Member: own, Kind: "CORRUPT"}}, 0, rest},
	} {
		v := view{quota: DefaultQuota, alarms: c.alarms}
		v.own.Size, v.own.InUse, v.own.Header.Member, v.own.Header.Revision = c.size<<20, c.inUse<<20, own, 5
		if found := v.next(c.reclaimed); found != c.want {
			t.Errorf("%s: found step %d, expected %d", name, found, c.want)
		}
	}
}

// TestSettings: a directory without a member says so, and one that has a member keeps it.
func TestSettings(t *testing.T) {
	d, n := Dir(t.TempDir()+"/etcd"), Node{Name: "n1", Address: "127.0.0.1", Port: DefaultPort}
	if err := d.Init("test", n, DefaultPace, DefaultQuota); err != nil {
		t.Fatal(err)
	}
	if err := d.Init("test", n, DefaultPace, DefaultQuota); err == nil {
		t.Fatal("a member was made over another")
	}
	s, err := d.Settings()
	if err != nil || s.Node != n || s.Cluster != "test" || s.Pace != DefaultPace {
		t.Fatalf("found %+v, error %v", s, err)
	}
	for name, wrong := range map[string]error{
		"cluster":  d.Init("a/b", n, DefaultPace, DefaultQuota),
		"node":     d.Init("a", Node{Name: "a/b", Address: "x", Port: 1}, DefaultPace, DefaultQuota),
		"address":  d.Init("a", Node{Name: "a", Port: 1}, DefaultPace, DefaultQuota),
		"port":     d.Init("a", Node{Name: "a", Address: "x", Port: 65534}, DefaultPace, DefaultQuota),
		"election": d.Init("a", n, Pace{DefaultPace.Tick, 4 * DefaultPace.Tick}, DefaultQuota),
	} {
		if wrong == nil {
			t.Errorf("a wrong %s was taken", name)
		}
	}
}
