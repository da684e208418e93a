package sim

import "testing"

// judge prints an experiment and fails for each row that misses its criterion.
func judge(t *testing.T, rows []Row, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Log("      what | paper | expected | measured")
	for _, r := range rows {
		t.Log(r)
		if !r.Pass {
			t.Errorf("%s %s: measured %s, expected %s", r.Experiment, r.What, r.Measured, r.Expected)
		}
	}
}

// skipUnderRace keeps long experiments out of slow builds.
func skipUnderRace(t *testing.T) {
	if raceDetector {
		t.Skip("long, and of one goroutine: the race detector has nothing to find")
	}
}

func TestBandwidths(t *testing.T) { judge(t, bandwidths(), nil) }

func TestResponseTimes(t *testing.T) {
	rows, err := responseTimes()
	judge(t, rows, err)
}

func TestBlockSizes(t *testing.T) {
	rows, err := blockSizes()
	judge(t, rows, err)
}

func TestThroughputs(t *testing.T) {
	skipUnderRace(t)
	rows, err := throughputs()
	judge(t, rows, err)
}

func TestPostmark(t *testing.T) {
	skipUnderRace(t)
	rows, err := postmarks()
	judge(t, rows, err)
}
