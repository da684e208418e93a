package backstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Thermal is a Store that may know how warm its medium is.
type Thermal interface {
	// Temperature is in degrees Celsius. It may block. ErrUnsupported says that the
	// store cannot tell.
	Temperature() (celsius int, err error)
}

// TemperatureOf returns the temperature of s, or says with ErrUnsupported that s
// does not know it.
func TemperatureOf(s Store) (celsius int, err error) {
	if thermal, ok := s.(Thermal); ok {
		return thermal.Temperature()
	}
	return 0, fmt.Errorf("temperature of %s: %w", s.Info().Describe, ErrUnsupported)
}

// Temperature implements Thermal: what the kernel reads from the disk that the
// volume is on, if that is one disk with a sensor (hwmon, for SATA disks by the
// module drivetemp).
func (v *volume) Temperature() (int, error) {
	var st unix.Stat_t
	if err := unix.Fstat(v.fd, &st); err != nil {
		return 0, fmt.Errorf("temperature of %s: %w", v.path, err)
	}
	dev := st.Dev
	if v.device {
		dev = st.Rdev
	}
	if q := queueOf(dev); q != "" {
		if celsius, ok := sensorOf(filepath.Join(string(q), "..")); ok {
			return celsius, nil
		}
	}
	return 0, fmt.Errorf("temperature of %s: %w", v.path, ErrUnsupported)
}

// sensors are where kernels of different age put a disk's own sensor, below its
// directory in sysfs.
var sensors = []string{"device/hwmon*/temp1_input", "device/hwmon/hwmon*/temp1_input", "device/device/hwmon/hwmon*/temp1_input"}

// sensorOf reads the first sensor that a disk has; the kernel gives thousandths of
// a degree.
func sensorOf(disk string) (celsius int, ok bool) {
	for _, pattern := range sensors {
		found, _ := filepath.Glob(filepath.Join(disk, pattern)) // none for a bad pattern
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				continue
			}
			if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				return n / 1000, true
			}
		}
	}
	return 0, false
}
