package backstoretest

import (
	"strings"
	"testing"
)

// A Ledger's verdict on what a power cut leaves of two sectors.
func TestLedger(t *testing.T) {
	for name, test := range map[string]struct {
		use  func(l *Ledger, data []byte) // data are what is left, zeroes at first
		want string                       // of the error; empty: none
	}{
		"nothing":      {func(*Ledger, []byte) {}, ""},
		"lost":         {func(l *Ledger, _ []byte) { l.Write(make([]byte, 2*sector), 0); l.Acknowledged(0, 2, false) }, ""},
		"lost, stable": {func(l *Ledger, _ []byte) { l.Write(make([]byte, 2*sector), 0); l.Acknowledged(0, 2, true) }, "zeroes, expected version 1"},
		"lost, flushed": {func(l *Ledger, _ []byte) {
			l.Write(make([]byte, sector), 1)
			l.Acknowledged(1, 1, false)
			l.Flushed(1, 1)
		}, "sector 1 is zeroes"},
		"failed, flushed": {func(l *Ledger, _ []byte) { l.Write(make([]byte, sector), 1); l.Flushed(0, 2) }, ""},
		"kept":            {func(l *Ledger, data []byte) { l.Write(data, 0); l.Acknowledged(0, 2, true) }, ""},
		"zeroed":          {func(l *Ledger, _ []byte) { l.Zero(0, 2); l.Acknowledged(0, 2, true) }, ""},
		"back from zero":  {func(l *Ledger, data []byte) { l.Write(data, 0); l.Zero(0, 2); l.Acknowledged(0, 2, true) }, "version 1, expected 2"},
		"older": {func(l *Ledger, data []byte) {
			l.Write(data, 0)
			l.Write(make([]byte, sector), 0)
			l.Acknowledged(0, 1, true)
		}, "version 1, expected 2"},
		"from nowhere": {func(_ *Ledger, data []byte) { NewLedger(2).Write(data, 0) }, "version 1, expected 0 to 0"},
		"torn":         {func(l *Ledger, data []byte) { l.Write(data, 0); clear(data[8:16]) }, "torn"},
		"exchanged":    {func(l *Ledger, data []byte) { l.Write(data, 0); copy(data, data[sector:]) }, "the data of sector 1"},
	} {
		t.Run(name, func(t *testing.T) {
			l, data := NewLedger(2), make([]byte, 2*sector)
			test.use(l, data)
			err := l.Cut(func() []byte { return data })
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("found %v, expected %q", err, test.want)
			}
		})
	}
}

// After a failed write either version may be read, but then always the same.
func TestLedgerReads(t *testing.T) {
	l := NewLedger(1)
	first, second := make([]byte, sector), make([]byte, sector)
	l.Write(first, 0)
	l.Acknowledged(0, 1, false)
	l.Write(second, 0)
	if err := l.Read(first, 0); err != nil {
		t.Error(err)
	}
	if err := l.Read(second, 0); err == nil {
		t.Error("a read has changed its mind")
	}
}
