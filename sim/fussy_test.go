package sim

import "testing"

func TestFussyLatencies(t *testing.T) {
	skipUnderRace(t)
	rows, err := fussyLatencies()
	judge(t, rows, err)
}

func TestFussyHitRates(t *testing.T) {
	rows, err := fussyHitRates()
	judge(t, rows, err)
}

func TestFussyAdversary(t *testing.T) {
	rows, err := adversary()
	judge(t, rows, err)
}
