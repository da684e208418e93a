package daemon

import (
	"fmt"
	"maps"
	"slices"

	"lunar/backstore"
	"lunar/control"
	"lunar/target"
	"lunar/target/scsi"
	"lunar/target/scsi/sense"
)

// keyNames are the sense keys that there are, in words.
var keyNames = map[sense.Key]string{
	sense.NoSense: "no sense", sense.RecoveredError: "recovered error", sense.NotReady: "not ready", sense.MediumError: "medium error",
	sense.HardwareError: "hardware error", sense.IllegalRequest: "illegal request", sense.UnitAttention: "unit attention",
	sense.DataProtect: "data protect", sense.BlankCheck: "blank check", sense.CopyAborted: "copy aborted",
	sense.AbortedCommand: "aborted command", sense.VolumeOverflow: "volume overflow", sense.Miscompare: "miscompare", sense.Completed: "completed",
}

func (d *daemon) incidents() *control.Incidents {
	n := d.Incidents()
	out := &control.Incidents{
		Sense: []control.SenseCount{}, Functions: []control.FunctionCount{},
		Aborted: n.Aborted, HeaderDigests: n.HeaderDigests, DataDigests: n.DataDigests,
	}
	for _, k := range slices.SortedFunc(maps.Keys(n.Sense), func(a, b target.SenseKind) int {
		return (int(a.Key)<<16 | int(a.ASC)) - (int(b.Key)<<16 | int(b.ASC))
	}) {
		out.Sense = append(out.Sense, control.SenseCount{Key: keyNames[k.Key], ASC: fmt.Sprintf("%04x", uint16(k.ASC)), Count: n.Sense[k]})
	}
	for _, f := range slices.Sorted(maps.Keys(n.Functions)) {
		out.Functions = append(out.Functions, control.FunctionCount{Function: f.String(), Count: n.Functions[f]})
	}
	return out
}

// storeErrors are of the kinds that matter to initiators; zeros too, so that a first error
// is an increase.
func storeErrors(lu *scsi.LogicalUnit) []control.StoreErrors {
	out := []control.StoreErrors{}
	for kind := backstore.Read; kind <= backstore.Erase; kind++ {
		if n := lu.StoreErrors(kind); n > 0 || kind <= backstore.Flush {
			out = append(out, control.StoreErrors{Operation: kind.String(), Count: n})
		}
	}
	return out
}
