package control

import (
	"context"
	"net/http"
)

// The paths of moves of volumes between servers.
const (
	SendPath     = "/v1/volumes/{name}/send"
	ReceivePath  = "/v1/volumes/{name}/receive"
	ChecksumPath = "/v1/volumes/{name}/checksum"
)

// DefaultMovePort is where a server receives, unless it is told otherwise.
const DefaultMovePort = "3262"

// MoveOverRDMA in front of an address, of both sides, has a volume go over RDMA.
const MoveOverRDMA = "rdma://"

// Send says where a volume is sent.
type Send struct {
	To          string `json:"to" doc:"Where the other server receives: host:port; rdma://host:port over RDMA."`
	Key         string `json:"key" doc:"The one-time key with which it receives."`
	Rate        int64  `json:"rate,omitempty" minimum:"0" doc:"Bytes in a second that are read at most; absent or 0: no bound."`
	Channels    int    `json:"channels,omitempty" minimum:"0" maximum:"8" doc:"Connections for data; absent or 0: 2."`
	Incremental bool   `json:"incremental,omitempty" doc:"From now on note which blocks are written, and read only those that were since the last such move. Without, all are read, and nothing is noted any more."`
}

// Loggable is what a log may have of it.
func (s Send) Loggable() any {
	s.Key = Withheld
	return s
}

// SentVolume is what has come of Send.
type SentVolume struct {
	Size     int64  `json:"size" doc:"Of the volume in bytes."`
	Blocks   int64  `json:"blocks" doc:"Of 1 MiB, that the volume has."`
	Read     int64  `json:"read" doc:"Blocks that were read, with repetitions: others were never written, or are known from the last incremental move."`
	Sent     int64  `json:"sent" doc:"Blocks that were sent, with repetitions."`
	Same     int64  `json:"same" doc:"Blocks that the other server had already, or that have only zeroes."`
	Altered  int64  `json:"altered" doc:"Blocks that were looked at again, because initiators wrote meanwhile."`
	Damaged  int64  `json:"damaged" doc:"Blocks that were damaged on their way and sent again."`
	Checksum string `json:"checksum" doc:"Of the whole volume, in hexadecimal digits: BLAKE3 of the BLAKE3 of its blocks. The other server has read its copy and found the same."`
	Took     string `json:"took" doc:"For how long."`
}

// Outcome is for the log.
func (s SentVolume) Outcome() string { return "sent, checksum " + s.Checksum }

// Receive says where a volume is stored that comes from another server.
type Receive struct {
	Path          string `json:"path" doc:"File that becomes the volume's. It must not be there yet; until the volume is whole its name has .receiving behind it."`
	Listen        string `json:"listen" doc:"Where to wait for the other server: address:port; rdma://address:port over RDMA."`
	Key           string `json:"key" doc:"One-time key, which the other server needs: 32 random bytes in base64 for URLs, without padding."`
	Standby       bool   `json:"standby,omitempty" doc:"Do not make a volume of it when it is whole: a later move sends what has changed since."`
	Configuration Object `json:"config,omitempty" doc:"Further keys of the volume, as in a configuration file. Type, path, size and block-size are those of the move."`
}

// Loggable is what a log may have of it.
func (r Receive) Loggable() any {
	r.Key = Withheld
	r.Configuration = r.Configuration.loggable("volumes")
	return r
}

// ReceivedVolume is what has come of Receive.
type ReceivedVolume struct {
	Path      string `json:"path" doc:"Of its file."`
	Source    string `json:"source" doc:"What the volume is called at the other server."`
	Size      int64  `json:"size" doc:"In bytes."`
	BlockSize int    `json:"blockSize" doc:"Of a logical block in bytes."`
	Stored    int64  `json:"stored" doc:"Blocks of 1 MiB that were stored by the last connection."`
	Kept      int64  `json:"kept" doc:"Blocks that were there from an earlier one."`
	Repeated  int64  `json:"repeated" doc:"Blocks that were stored again as they were."`
	Checksum  string `json:"checksum" doc:"Of the whole volume, which was read again."`
	Served    bool   `json:"served" doc:"It is a volume of this server now."`
}

// Outcome is for the log.
func (r ReceivedVolume) Outcome() string { return "received, checksum " + r.Checksum }

// VolumeChecksum is the checksum of a volume.
type VolumeChecksum struct {
	Size     int64  `json:"size" doc:"Of the volume in bytes."`
	Checksum string `json:"checksum" doc:"BLAKE3 of the BLAKE3 of its blocks of 1 MiB, in hexadecimal digits."`
	Took     string `json:"took" doc:"For how long."`
}

// Outcome is for the log.
func (v VolumeChecksum) Outcome() string { return "checksum " + v.Checksum }

// StartSend sends a volume, as a job.
func (c *Client) StartSend(ctx context.Context, volume string, s Send) (Job, error) {
	return c.start(ctx, http.MethodPost, pathOf(SendPath, "{name}", volume), s)
}

// StartReceive receives a volume, as a job.
func (c *Client) StartReceive(ctx context.Context, volume string, r Receive) (Job, error) {
	return c.start(ctx, http.MethodPost, pathOf(ReceivePath, "{name}", volume), r)
}

// StartChecksum reads a volume for its checksum, as a job.
func (c *Client) StartChecksum(ctx context.Context, volume string) (Job, error) {
	return c.start(ctx, http.MethodPost, pathOf(ChecksumPath, "{name}", volume), struct{}{})
}
