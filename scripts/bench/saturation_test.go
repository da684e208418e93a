package main

import (
	"strings"
	"testing"

	"lunar/conf"
	"lunar/internal/initiator/load"
)

// TestSaturationConfiguration: the servers' configurations are valid, and each party has
// the rule that it is said to have.
func TestSaturationConfiguration(t *testing.T) {
	m := openSaturator(&options{}, plan{})
	for _, l := range m.loads {
		for _, c := range l.cases() {
			text := m.yaml(c.on, 3260)
			cfg, _, err := conf.Parse("saturation.yaml", []byte(text))
			if err != nil {
				t.Fatalf("%s, %s: %v\n%s", l.name, c.name, err, text)
			}
			if c.on.ruled != (len(cfg.QoS.Rules) > 0) {
				t.Errorf("%s, %s: %d rules", l.name, c.name, len(cfg.QoS.Rules))
			}
			for _, r := range cfg.QoS.Rules {
				if name := l.initiator(l.parties[0]); strings.HasPrefix(r.Initiators[0], name) && r.Reservation.IOPS != l.parties[0].reservation {
					t.Errorf("%s has %d reserved, expected %d", name, r.Reservation.IOPS, l.parties[0].reservation)
				}
			}
		}
	}
}

func TestSaturationVerdict(t *testing.T) {
	l := saturation{parties: []party{gold(4), readingHog, capped}, goal: promise{rate: 20000, p50: 2, p99: 3, p99us: 500, total: 0.9}}
	result := func(iops, p50, p99 float64) load.Result {
		return load.Result{IOPS: iops, BytesPerSecond: iops * 4096, Latency: load.Latency{P50: p50, P99: p99}}
	}
	good := map[string]load.Result{
		"alone/gold":         result(100000, 20, 80),
		"without rules/gold": result(5000, 900, 2000), "without rules/hog": result(190000, 0, 0), "without rules/capped": result(5000, 0, 0),
		"with rules/gold": result(30000, 40, 240), "with rules/hog": result(145000, 0, 0), "with rules/capped": result(5010, 0, 0),
	}
	tests := []struct {
		name    string
		key     string
		changed load.Result
		reached bool
	}{
		{"kept", "with rules/hog", good["with rules/hog"], true},
		{"rate", "with rules/gold", result(19000, 40, 240), false},
		{"p50", "with rules/gold", result(30000, 41, 240), false},
		{"p99 to alone", "with rules/gold", result(30000, 40, 241), false},
		{"p99", "alone/gold", result(100000, 20, 1000), true},
		{"all", "with rules/hog", result(144000, 0, 0), false},
		{"above the limit", "with rules/capped", result(5060, 0, 0), false},
		{"below the limit", "with rules/capped", result(4940, 0, 0), false},
	}
	for _, test := range tests {
		r := round{Results: map[string]load.Result{}}
		for key, result := range good {
			r.Results[key] = result
		}
		r.Results[test.key] = test.changed
		if v := l.verdict([]round{r}, caseRuled); v.reached != test.reached {
			t.Errorf("%s: reached %v, expected %v: %+v", test.name, v.reached, test.reached, v)
		}
	}
}
