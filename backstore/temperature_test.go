package backstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestSensors: wherever a kernel puts it.
func TestSensors(t *testing.T) {
	for _, place := range []string{"device/hwmon3", "device/hwmon/hwmon1", "device/device/hwmon/hwmon0"} {
		disk := t.TempDir()
		if _, ok := sensorOf(disk); ok {
			t.Error("a disk without a sensor has a temperature")
		}
		dir := filepath.Join(disk, place)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]int{"41850\n": 41, "-3000\n": -3} {
			if err := os.WriteFile(filepath.Join(dir, "temp1_input"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, ok := sensorOf(disk); !ok || got != want {
				t.Errorf("%s: %q: found %d, %v", place, text, got, ok)
			}
		}
	}
	s, err := NewRAM(1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := TemperatureOf(s); !errors.Is(err, ErrUnsupported) {
		t.Errorf("of memory: %v", err)
	}
}
