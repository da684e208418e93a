package scsi

import "testing"

// TestReconfigure: initiators are told what they may do from now on, and only when
// that has changed.
func TestReconfigure(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	caching := []byte{0x1a, 0x08, 0x08, 0, 0xff, 0}
	changeable := []byte{0x1a, 0x08, 0x48, 0, 0xff, 0}
	for _, step := range []struct {
		settings            Settings
		told, flush         bool
		wce, mayWCE, mayPut bool
	}{
		{settings: Settings{}, wce: true, mayWCE: true, mayPut: true},
		{settings: Settings{SanitizeRate: 5, SoftThreshold: 1}, wce: true, mayWCE: true, mayPut: true},
		{settings: Settings{WriteThrough: true}, told: true, flush: true, mayPut: true},
		{settings: Settings{WriteThrough: true}, mayPut: true},
		{settings: Settings{WriteThrough: true, ReadOnly: true}, told: true},
		{settings: Settings{ReadOnly: true}, told: true, wce: true, mayWCE: true},
		{settings: Settings{}, told: true, wce: true, mayWCE: true, mayPut: true},
	} {
		if flush := d.lu.Reconfigure(step.settings); flush != step.flush {
			t.Errorf("%+v: found flush %t, expected %t", step.settings, flush, step.flush)
		}
		if told := d.run(testUnitReady, nil).sense.ASC == ASCModeParametersChanged; told != step.told {
			t.Errorf("%+v: found initiators told %t, expected %t", step.settings, told, step.told)
		}
		if wce := d.good(caching, nil)[6]&0x04 != 0; wce != step.wce {
			t.Errorf("%+v: found WCE %t", step.settings, wce)
		}
		if may := d.good(changeable, nil)[6]&0x04 != 0; may != step.mayWCE {
			t.Errorf("%+v: found that WCE may change: %t", step.settings, may)
		}
		if protected := d.good(caching, nil)[2]&modeWriteProtected != 0; protected == step.mayPut {
			t.Errorf("%+v: found WP %t", step.settings, protected)
		}
	}
	d.lu.Reconfigure(Settings{WriteThrough: true, ReadOnly: true})
	d.lu.ResetState()
	if s := d.lu.State(); s.WriteCache || !s.WriteThrough || !s.ReadOnly {
		t.Errorf("found %+v after a reset", *s)
	}
}
