package conf

import "time"

// The bounds of SnapshotSchedule.Every.
const (
	minSnapshotPeriod = time.Minute
	maxSnapshotPeriod = 366 * 24 * time.Hour
)

func snapshotSchedule(v *Volume) setter {
	return func(d *decoder, n node) {
		s := &SnapshotSchedule{}
		ok := d.mapping(n, fields{
			"every": duration(&s.Every, minSnapshotPeriod, maxSnapshotPeriod),
			"keep":  number(&s.Keep, 1, 10_000),
		})
		if ok {
			d.require(n, "every", "a time such as 1h: one snapshot in each")
			d.require(n, "keep", "how many of them are kept")
		}
		v.Snapshots = s
	}
}

// fitsSnapshots refuses a schedule for what has no snapshots.
func (d *decoder) fitsSnapshots(n node, v *Volume) {
	if v.Snapshots == nil {
		return
	}
	for _, other := range []struct {
		is       bool
		what, as string
	}{
		{v.ReadOnly, "it with read-only", "it of a volume that is written to"},
		{v.Excess != "", "it with excess", "no excess: a device has a part of the data"},
	} {
		if other.is {
			d.fail(n.path+".snapshots", other.what, other.as)
		}
	}
}
