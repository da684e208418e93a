package scsi

import (
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

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
		if told := d.run(testUnitReady, nil).sense.ASC == sense.ASCModeParametersChanged; told != step.told {
			t.Errorf("%+v: found initiators told %t, expected %t", step.settings, told, step.told)
		}
		if wce := d.good(caching, nil)[6]&0x04 != 0; wce != step.wce {
			t.Errorf("%+v: found WCE %t", step.settings, wce)
		}
		if may := d.good(changeable, nil)[6]&0x04 != 0; may != step.mayWCE {
			t.Errorf("%+v: found that WCE may change: %t", step.settings, may)
		}
		if protected := d.good(caching, nil)[2]&0x80 != 0; protected == step.mayPut {
			t.Errorf("%+v: found WP %t", step.settings, protected)
		}
	}
	d.lu.Reconfigure(Settings{WriteThrough: true, ReadOnly: true})
	d.lu.ResetState()
	if s := d.lu.State(); s.WriteCache || !s.WriteThrough || !s.ReadOnly {
		t.Errorf("found %+v after a reset", *s)
	}
}

// TestTraits: what a store or the settings say otherwise is told, and nothing else.
func TestTraits(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	capacity, inquiry, mode := sense.ASCCapacityChanged, sense.ASCInquiryDataChanged, sense.ASCModeParametersChanged
	for name, test := range map[string]struct {
		settings Settings
		info     func(*backstore.Info)
		want     []sense.ASC
	}{
		"nothing":            {},
		"it has grown":       {info: func(i *backstore.Info) { i.Size *= 2; i.Describe = "another" }}, // the affair of Resize
		"explicit access":    {settings: Settings{ExplicitAccess: true}, want: []sense.ASC{inquiry}},
		"a physical block":   {settings: Settings{PhysicalBlock: 512}, want: []sense.ASC{capacity, inquiry}},
		"nothing unmapped":   {info: func(i *backstore.Info) { i.Discard, i.DiscardGran, i.DiscardZeroes, i.Thin = false, 0, false, false }, want: []sense.ASC{capacity, inquiry}},
		"no volatile cache":  {info: func(i *backstore.Info) { i.VolatileCache = false }, want: []sense.ASC{mode, inquiry}},
		"no atomic writes":   {info: func(i *backstore.Info) { i.MaxAtomic, i.AtomicUnit = 0, 0 }, want: []sense.ASC{inquiry}},
		"nothing is written": {info: func(i *backstore.Info) { i.ReadOnly = true }, want: []sense.ASC{mode}},
	} {
		d.lu.store = infoStore{diskInfo()}
		d.lu.Reconfigure(Settings{})
		for _, told := d.nexus.takeAttention(); told; _, told = d.nexus.takeAttention() {
		}
		info := diskInfo()
		if test.info != nil {
			test.info(&info)
		}
		d.lu.store = infoStore{info}
		d.lu.Reconfigure(test.settings)
		for _, want := range test.want {
			if got, _ := d.nexus.takeAttention(); got != want {
				t.Errorf("%s: found unit attention %04x, expected %04x", name, got, want)
			}
		}
		if got, more := d.nexus.takeAttention(); more {
			t.Errorf("%s: found unit attention %04x, expected no more", name, got)
		}
	}
	for store, fits := range map[backstore.Info]bool{
		diskInfo():                       true,
		{Size: 1 << 19, BlockSize: 1}:    false,
		{Size: 1 << 20, BlockSize: 4096}: false,
		{Size: 2 << 20, BlockSize: 512}:  true,
	} {
		if err := d.lu.Accepts(infoStore{store}); (err == nil) != fits {
			t.Errorf("%+v: found %v, expected that it fits: %t", store, err, fits)
		}
	}
}
