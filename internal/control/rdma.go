package control

import "strconv"

// RDMA is iSCSI over RDMA (iSER).
type RDMA struct {
	Off     string       `json:"off,omitempty" doc:"Why it is not served although it was asked for."`
	Devices []RDMADevice `json:"devices" nullable:"false" doc:"RDMA devices in use."`
}

// RDMADevice is an RDMA device and what was done with it.
type RDMADevice struct {
	Name            string        `json:"name" doc:"Name of the device, as rdma link has it."`
	Connections     int           `json:"connections" doc:"Connections on it, those in login included."`
	RegisteredBytes int64         `json:"registered_bytes" doc:"Memory that it may use, locked in memory."`
	Receives        uint64        `json:"receives" doc:"PDUs of initiators."`
	Sends           uint64        `json:"sends" doc:"PDUs to initiators."`
	Writes          uint64        `json:"writes" doc:"RDMA Writes: data to initiators."`
	Reads           uint64        `json:"reads" doc:"RDMA Reads: data of initiators."`
	WriteBytes      uint64        `json:"write_bytes" doc:"Data of RDMA Writes."`
	ReadBytes       uint64        `json:"read_bytes" doc:"Data of RDMA Reads."`
	Posts           uint64        `json:"posts" doc:"Lists of work given to the device."`
	Invalidations   uint64        `json:"invalidations" doc:"Sends that spared the initiator invalidating its key."`
	BouncedBytes    uint64        `json:"bounced_bytes" doc:"Data that had to be copied before it was sent: parameter data."`
	Polls           uint64        `json:"polls" doc:"Looks for completions that found some."`
	Arms            uint64        `json:"arms" doc:"Times that a completion queue was made to wake its thread."`
	Failures        uint64        `json:"failures" doc:"Connections that a failed operation ended."`
	Ports           []RDMACounter `json:"ports" nullable:"false" doc:"What the kernel counts of its ports."`
}

// RDMACounter is a counter of the kernel.
type RDMACounter struct {
	Port  int    `json:"port" doc:"Number of the port, from 1."`
	Name  string `json:"name" doc:"Name of the counter, as in /sys/class/infiniband."`
	Value uint64 `json:"value" doc:"What it says."`
}

// ofRDMA makes a metric of every RDMA device.
func ofRDMA(value func(*RDMADevice) float64) func(*Status, emitter) {
	return func(s *Status, emit emitter) {
		if s.RDMA == nil {
			return
		}
		for i := range s.RDMA.Devices {
			emit(value(&s.RDMA.Devices[i]), s.RDMA.Devices[i].Name)
		}
	}
}

var rdmaLabels = []string{"device"}

var rdmaMetrics = []metric{
	{"lunar_rdma_up", "", "Whether iSCSI over RDMA is served; absent if nobody asked for it.", gauge, nil,
		func(s *Status, emit emitter) {
			if s.RDMA == nil {
				return
			}
			if s.RDMA.Off == "" {
				emit(1)
			} else {
				emit(0)
			}
		}},
	{"lunar_rdma_connections", "", "Connections on an RDMA device.", gauge, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Connections) })},
	{"lunar_rdma_registered_bytes", "bytes", "Memory that an RDMA device may use.", gauge, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.RegisteredBytes) })},
	{"lunar_rdma_receives_total", "", "PDUs of initiators over RDMA.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Receives) })},
	{"lunar_rdma_sends_total", "", "PDUs to initiators over RDMA.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Sends) })},
	{"lunar_rdma_writes_total", "", "RDMA Writes: data to initiators.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Writes) })},
	{"lunar_rdma_reads_total", "", "RDMA Reads: data of initiators.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Reads) })},
	{"lunar_rdma_write_bytes_total", "bytes", "Data of RDMA Writes.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.WriteBytes) })},
	{"lunar_rdma_read_bytes_total", "bytes", "Data of RDMA Reads.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.ReadBytes) })},
	{"lunar_rdma_posts_total", "", "Lists of work given to an RDMA device.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Posts) })},
	{"lunar_rdma_invalidations_total", "", "Sends that invalidated the initiator's key.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Invalidations) })},
	{"lunar_rdma_bounced_bytes_total", "bytes", "Data that had to be copied before an RDMA Write.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.BouncedBytes) })},
	{"lunar_rdma_polls_total", "", "Looks into completion queues that found something.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Polls) })},
	{"lunar_rdma_arms_total", "", "Times that a completion queue was made to wake its thread.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Arms) })},
	{"lunar_rdma_failures_total", "", "Connections that a failed RDMA operation ended.", counter, rdmaLabels,
		ofRDMA(func(d *RDMADevice) float64 { return float64(d.Failures) })},
	{"lunar_rdma_port_counter", "", "Counters of the kernel of an RDMA device's ports.", gauge, []string{"device", "port", "counter"},
		func(s *Status, emit emitter) {
			if s.RDMA == nil {
				return
			}
			for i := range s.RDMA.Devices {
				d := &s.RDMA.Devices[i]
				for _, c := range d.Ports {
					emit(float64(c.Value), d.Name, strconv.Itoa(c.Port), c.Name)
				}
			}
		}},
}
