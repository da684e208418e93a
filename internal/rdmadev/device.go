package rdmadev

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/Mellanox/rdmamap"
)

// ForNetdev is the name of the RDMA device that a network device, such as eth2,
// belongs to.
func ForNetdev(netdev string) (string, error) {
	device, err := rdmamap.GetRdmaDeviceForNetdevice(netdev)
	if err == nil && device == "" {
		err = fmt.Errorf("rdma device not found for netdev %s", netdev)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", netdev, err)
	}
	return device, nil
}

// Node is the NUMA node of an RDMA device; -1 if it has none, as with software
// devices.
func Node(device string) int { return nodeIn(rdmamap.RdmaClassDir, device) }

func nodeIn(class, device string) int {
	text, err := os.ReadFile(filepath.Join(class, device, "device", "numa_node"))
	if err != nil {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return node
}

// Counter is what a port has counted.
type Counter struct {
	Port  int    // from 1
	Name  string // as the kernel has it, such as rcvd_rnr_err
	Value uint64
}

// Counters are those of all ports of a device, in order of port and name.
func Counters(device string) ([]Counter, error) {
	var all []Counter
	for _, port := range rdmamap.GetPorts(device) {
		number, err := strconv.Atoi(port)
		if err != nil {
			continue
		}
		// A device without one of the two directories has the other.
		hardware, hardwareErr := rdmamap.GetRdmaSysfsHwStats(device, number)
		standard, err := rdmamap.GetRdmaSysfsStats(device, number)
		if err != nil && hardwareErr != nil {
			return nil, fmt.Errorf("counters of %s: %w", device, err)
		}
		for _, c := range slices.Concat(hardware, standard) {
			all = append(all, Counter{number, c.Name, c.Value})
		}
	}
	slices.SortFunc(all, func(a, b Counter) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}
