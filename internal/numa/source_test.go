package numa

import (
	"log/slog"
	"testing"
)

// TestSource: the topology says what it was taken from.
func TestSource(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	whole := machine("0", fakeNode{0, "0-1", 1000})
	hidden := machine("0", fakeNode{0, "0-1", 1000})
	delete(hidden, sysNodes+"/node0/cpu0/topology/core_id")
	delete(hidden, sysNodes+"/node0/cpu1/topology/core_id")
	for want, files := range map[string]tree{"ghw": whole, "sysfs": hidden, "none": {"proc/meminfo": "MemTotal: 1 kB\n"}} {
		found, err := discover(files.write(t), []int{0, 1}, quiet)
		if err != nil || found.Source != want || len(found.Nodes) != 1 || len(found.Nodes[0].CPUs) != 2 {
			t.Errorf("found %+v, %v, expected source %s", found, err, want)
		}
		if forced, err := Override(found, 2); err != nil || forced.Source != "override" {
			t.Errorf("found %+v, %v, expected source override", forced, err)
		}
	}
}
