package control

// RDMA is iSCSI over RDMA (iSER).
type RDMA struct {
	Off     string       `json:"off,omitempty" doc:"Why it is not served although it was asked for."`
	Devices []RDMADevice `json:"devices" nullable:"false" doc:"RDMA devices in use."`
}

// RDMADevice is an RDMA device and what was done with it.
type RDMADevice struct {
	Name            string        `json:"name" doc:"Name of the device, as rdma link has it."`
	Connections     int           `json:"connections" metric:"connections" doc:"Connections on an RDMA device."`
	RegisteredBytes int64         `json:"registered_bytes" metric:"registered_bytes" doc:"Memory that an RDMA device may use."`
	Receives        uint64        `json:"receives" metric:"receives_total" doc:"PDUs of initiators over RDMA."`
	Sends           uint64        `json:"sends" metric:"sends_total" doc:"PDUs to initiators over RDMA."`
	Writes          uint64        `json:"writes" metric:"writes_total" doc:"RDMA Writes: data to initiators."`
	Reads           uint64        `json:"reads" metric:"reads_total" doc:"RDMA Reads: data of initiators."`
	WriteBytes      uint64        `json:"write_bytes" metric:"write_bytes_total" doc:"Data of RDMA Writes."`
	ReadBytes       uint64        `json:"read_bytes" metric:"read_bytes_total" doc:"Data of RDMA Reads."`
	Posts           uint64        `json:"posts" metric:"posts_total" doc:"Lists of work given to an RDMA device."`
	Invalidations   uint64        `json:"invalidations" metric:"invalidations_total" doc:"Sends that invalidated the initiator's key."`
	BouncedBytes    uint64        `json:"bounced_bytes" metric:"bounced_bytes_total" doc:"Data that had to be copied before an RDMA Write."`
	Polls           uint64        `json:"polls" metric:"polls_total" doc:"Looks into completion queues that found something."`
	Arms            uint64        `json:"arms" metric:"arms_total" doc:"Times that a completion queue was made to wake its thread."`
	Failures        uint64        `json:"failures" metric:"failures_total" doc:"Connections that a failed RDMA operation ended."`
	Ports           []RDMACounter `json:"ports" nullable:"false" doc:"What the kernel counts of its ports."`
}

// RDMACounter is a counter of the kernel.
type RDMACounter struct {
	Port  int    `json:"port" doc:"Number of the port, from 1."`
	Name  string `json:"name" doc:"Name of the counter, as in /sys/class/infiniband."`
	Value uint64 `json:"value" doc:"What it says."`
}
