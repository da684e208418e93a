package rdmadev

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Mellanox/rdmamap"
)

// host is what Check asks.
type host struct {
	devices func() []string
	files   func(device string) []string // character devices
	open    func(file string) error      // for reading and writing
	iwarp   func(device string) bool
}

// ErrIWARP says why a device is not used: peers could write to what its RDMA Reads fill.
var ErrIWARP = errors.New("it is an iWARP device; iSER is served over InfiniBand and RoCE only")

// IWARP reports whether the kernel calls a device an RNIC, which is what iWARP's are.
func IWARP(device string) bool { return iwarpIn(rdmamap.RdmaClassDir, device) }

// iwarpIn reads node_type, such as "1: CA" or "4: RNIC".
func iwarpIn(class, device string) bool {
	text, err := os.ReadFile(filepath.Join(class, device, "node_type"))
	return err == nil && strings.HasPrefix(string(text), "4:")
}

func thisHost() host {
	return host{rdmamap.GetRdmaDeviceList, rdmamap.GetRdmaCharDevices, func(file string) error {
		f, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}, IWARP}
}

// Check says what stands against the use of RDMA on this host, and what to do
// about it: no device, kernel modules that are not loaded, or files that this
// process may not open. It returns nil if one device at least can be used.
func Check() error { return thisHost().check() }

func (h host) check() error {
	devices := h.devices()
	if len(devices) == 0 {
		return errors.New("this host has no RDMA device (load the adapter's driver; to try it out without one: modprobe rdma_rxe, rdma link add rxe0 type rxe netdev eth0)")
	}
	if err := h.usable(rdmamap.RdmaUcmDevice, "rdma_ucm"); err != nil {
		return err
	}
	var faults []error
	for _, device := range devices {
		err := h.checkDevice(device)
		if err == nil {
			return nil
		}
		faults = append(faults, fmt.Errorf("%s: %w", device, err))
	}
	return errors.Join(faults...)
}

func (h host) checkDevice(device string) error {
	if h.iwarp(device) {
		return ErrIWARP
	}
	for _, file := range h.files(device) {
		if strings.Contains(file, "/uverbs") {
			return h.usable(file, "ib_uverbs")
		}
	}
	return missing("its uverbs device", "ib_uverbs")
}

func (h host) usable(file, module string) error {
	err := h.open(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing(file, module)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (give the user of this process access to it: a group and a udev rule, or root)", err)
	}
	return err
}

func missing(what, module string) error {
	return fmt.Errorf("%s does not exist: the kernel module %s is not loaded (modprobe %s)", what, module, module)
}

// Devices are the names of the host's RDMA devices, sorted.
func Devices() []string { return slices.Sorted(slices.Values(rdmamap.GetRdmaDeviceList())) }
