package server

import (
	"strconv"

	"lunar/control"
)

func eachRDMADevice(s *control.Status, yield func(*control.RDMADevice, ...string)) {
	if s.RDMA == nil {
		return
	}
	for i := range s.RDMA.Devices {
		yield(&s.RDMA.Devices[i], s.RDMA.Devices[i].Name)
	}
}

var rdmaLabels = []string{"device"}

var rdmaMetrics = []metric{
	{"lunar_rdma_up", "", "Whether iSCSI over RDMA is served; absent if nobody asked for it.", gauge, nil,
		func(s *control.Status, emit emitter) {
			if s.RDMA != nil {
				emit(truth(s.RDMA.Off == ""))
			}
		}},
	{"lunar_rdma_port_counter", "", "Counters of the kernel of an RDMA device's ports.", gauge, []string{"device", "port", "counter"},
		func(s *control.Status, emit emitter) {
			eachRDMADevice(s, func(d *control.RDMADevice, _ ...string) {
				for _, c := range d.Ports {
					emit(float64(c.Value), d.Name, strconv.Itoa(c.Port), c.Name)
				}
			})
		}},
}
