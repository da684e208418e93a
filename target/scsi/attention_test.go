package scsi

import (
	"slices"
	"sync"
	"testing"

	"lunar/target/scsi/sense"
)

func drain(n *Nexus) (codes []sense.ASC) {
	for asc, ok := n.takeAttention(); ok; asc, ok = n.takeAttention() {
		codes = append(codes, asc)
	}
	return codes
}

// TestAttentionQueue: merging, order, precedence of resets and the bound.
func TestAttentionQueue(t *testing.T) {
	mode, luns, cleared := sense.ASCModeParametersChanged, sense.ASCReportedLUNsDataChanged, sense.ASCCommandsClearedByAnother
	many := make([]sense.ASC, maxAttentions+3)
	for i := range many {
		many[i] = sense.ASC(0x3f00 + i)
	}
	tests := []struct {
		name      string
		add, want []sense.ASC
	}{
		{"none", nil, nil},
		{"in order", []sense.ASC{mode, luns}, []sense.ASC{mode, luns}},
		{"merged", []sense.ASC{mode, luns, mode}, []sense.ASC{mode, luns}},
		{"a reset clears what was before", []sense.ASC{mode, luns, sense.ASCDeviceReset}, []sense.ASC{sense.ASCDeviceReset}},
		{"not what comes after", []sense.ASC{sense.ASCReset, cleared}, []sense.ASC{sense.ASCReset, cleared}},
		{"the last reset stands", []sense.ASC{sense.ASCReset, sense.ASCBusReset}, []sense.ASC{sense.ASCBusReset}},
		{"the oldest gives way", many, many[3:]},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var n Nexus
			for _, asc := range tt.add {
				n.Attention(asc)
			}
			if n.attentions.pending.Load() != (len(tt.want) > 0) {
				t.Error("pending flag")
			}
			if got := drain(&n); !slices.Equal(got, tt.want) {
				t.Errorf("%04x, expected %04x", got, tt.want)
			}
			if n.attentions.pending.Load() {
				t.Error("pending after the last")
			}
		})
	}
}

// TestAttentionDelivery: the next command that may report it does, once.
func TestAttentionDelivery(t *testing.T) {
	m := newMedium(mib)
	n := newUnit(t, m, LUConfig{})
	other := &Nexus{LU: n.LU}
	n.LU.Attach(other)
	th := prompt(t, m)
	check := func(n *Nexus, want *sense.Data) {
		t.Helper()
		c := th.start(n, []byte{0}, nil, 0).finish().c
		if want == nil && c.Status != Good || want != nil && (c.Status != CheckCondition || *c.Sense != *want) {
			t.Errorf("status %02x, sense %+v, expected %+v", c.Status, c.Sense, want)
		}
	}
	check(other, &sense.Data{Key: sense.UnitAttention, ASC: sense.ASCReset})
	check(other, nil)
	n.LU.Attention(sense.ASCModeParametersChanged, n)
	check(n, nil)
	th.start(other, []byte{0x12, 0, 0, 0, 36}, nil, 36).finish()
	check(other, &sense.Data{Key: sense.UnitAttention, ASC: sense.ASCModeParametersChanged})
	check(other, nil)
	n.LU.Detach(other)
	n.LU.Attention(sense.ASCCapacityChanged, nil)
	check(other, nil)
	check(n, &sense.Data{Key: sense.UnitAttention, ASC: sense.ASCCapacityChanged})
}

// TestAttentionFromAnyGoroutine is for the race detector.
func TestAttentionFromAnyGoroutine(t *testing.T) {
	n := newUnit(t, newMedium(mib), LUConfig{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				n.LU.Attention(sense.ASCModeParametersChanged, nil)
				n.takeAttention()
				n.clearAttention(sense.ASCModeParametersChanged)
			}
		})
	}
	wg.Wait()
	if got := drain(n); len(got) > 1 {
		t.Errorf("%04x", got)
	}
}

// TestAttachedByPort: sessions of one initiator port with several target ports are
// different nexuses.
func TestAttachedByPort(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	for tag := range uint16(16) {
		d.lu.Attach(&Nexus{LU: d.lu, Initiator: "i", Target: "t", TargetTag: tag})
	}
	for tag := range uint16(16) {
		if n := d.lu.Attached("i", "t", tag); n == nil || n.TargetTag != tag {
			t.Errorf("found %+v, expected the nexus with port %d", n, tag)
		}
	}
	if n := d.lu.Attached("i", "t", 16); n != nil {
		t.Errorf("found %+v, expected none", n)
	}
}
