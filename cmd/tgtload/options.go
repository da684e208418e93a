package main

import (
	"github.com/alecthomas/kong"

	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
)

// options is the command line.
type options struct {
	Version kong.VersionFlag `help:"Print the version."`

	Target      target  `required:"" placeholder:"iscsi://HOST[:PORT]/NAME/LUN" help:"Logical unit to load."`
	Connections int     `default:"1" help:"Connections, each a session of its own."`
	Depth       int     `default:"32" help:"Outstanding commands per connection."`
	LUNs        int     `name:"luns" default:"1" help:"Number of logical units over which the connections are spread: that of the target and the following ones, of the same size."`
	Sizes       mix     `name:"bs" default:"4k" placeholder:"SIZE|SIZE:WEIGHT,..." help:"Block size, or a mix such as 4k:70,128k:30."`
	RW          string  `name:"rw" default:"randread" enum:"read,write,rw,randread,randwrite,randrw" help:"Pattern: ${enum}."`
	ReadPercent int     `default:"50" help:"Reads of every hundred commands with rw and randrw."`
	Offset      size    `default:"0" help:"Start of the range."`
	Size        size    `default:"0" help:"Length of the range; 0 means to the end."`
	Rate        float64 `help:"Commands per second and connection, evenly spread, instead of as many as the depth allows."`
	Seed        uint64  `default:"1" help:"Seed of pattern and data."`
	Verify      bool    `help:"Write a checkable pattern, check every read of it, read all back at the end."`

	Runtime time.Duration `default:"5s" help:"Time to measure."`
	Warmup  time.Duration `default:"1s" help:"Warm-up time, not counted."`

	Initiator        string     `default:"${initiator}" help:"Initiator name; %d in it is the connection's number, so that each is an initiator of its own."`
	Qualifier        uint8      `help:"Part of the ISIDs, to tell two runs of one name apart."`
	CHAPUser         string     `name:"chap" placeholder:"USER" help:"CHAP name."`
	CHAPSecretFile   string     `name:"chap-secret-file" type:"existingfile" help:"File with the CHAP secret."`
	MutualUser       string     `name:"mutual-chap" placeholder:"USER" help:"Name under which the target must prove itself."`
	MutualSecretFile string     `name:"mutual-chap-secret-file" type:"existingfile" help:"File with the target's secret."`
	CHAPAlgorithms   []int      `name:"chap-algorithms" help:"Offered in this order: 5 MD5, 6 SHA1, 7 SHA-256, 8 SHA3-256."`
	Digest           []string   `enum:"header,data" help:"Ask for CRC32C digests: header, data or both."`
	Key              []loginKey `placeholder:"NAME=VALUE" help:"Offer this value of an operational key; repeatable."`

	CPU       int           `default:"-1" help:"CPU of the event thread; -1 leaves it to the kernel."`
	Poll      time.Duration `help:"Poll this long for responses before sleeping, so that wake-ups of the client are not measured; needs a CPU of its own."`
	InTurns   bool          `help:"Look at answers, and send again, only when all outstanding commands have one, so that server and client never work at a time; for commands of one PDU each way, without digests."`
	Send      size          `default:"0" help:"Most bytes that one system call sends, so that other processes of the client's CPU wait less where the kernel does not preempt; 0 is any."`
	ServerPID []int         `name:"server-pid" help:"Process whose CPU time per I/O is reported; repeatable."`
	JSON      bool          `name:"json" help:"Print JSON."`
}

// target is a URL on the command line.
type target struct{ initiator.URL }

// UnmarshalText parses the URL.
func (t *target) UnmarshalText(text []byte) (err error) {
	t.URL, err = initiator.ParseURL(string(text))
	return err
}

// loginKey is a text key on the command line.
type loginKey initiator.Key

// UnmarshalText parses NAME=VALUE.
func (k *loginKey) UnmarshalText(text []byte) error {
	name, value, ok := strings.Cut(string(text), "=")
	if !ok || name == "" {
		return fmt.Errorf("key %q, expected NAME=VALUE", text)
	}
	*k = loginKey{name, value}
	return nil
}

// size is a number of bytes as in a configuration of tgtd, or as fio takes it:
// alone, or with a binary suffix k, m, g or t.
type size uint64

// UnmarshalText parses a size such as 4KiB or 4k.
func (s *size) UnmarshalText(text []byte) error {
	lower := strings.ToLower(string(text))
	digits := strings.TrimRight(lower, "kmgtib")
	shift, ok := map[string]uint{"": 0, "b": 0, "k": 10, "kib": 10, "m": 20, "mib": 20, "g": 30, "gib": 30, "t": 40, "tib": 40}[lower[len(digits):]]
	n, err := strconv.ParseUint(strings.TrimRight(digits, " "), 10, 64)
	if err != nil || !ok || n > (1<<62)>>shift {
		return fmt.Errorf("size %q, expected a number with KiB, MiB, GiB or TiB, or with k, m, g or t", text)
	}
	*s = size(n << shift)
	return nil
}

// mix is one block size or several with weights.
type mix []load.Share

// UnmarshalText parses SIZE or SIZE:WEIGHT,SIZE:WEIGHT.
func (m *mix) UnmarshalText(text []byte) error {
	*m = nil
	for part := range strings.SplitSeq(string(text), ",") {
		bytes, weight, weighted := strings.Cut(part, ":")
		var s size
		if err := s.UnmarshalText([]byte(bytes)); err != nil {
			return err
		}
		share := load.Share{Bytes: int(s), Weight: 1}
		if weighted {
			n, err := strconv.Atoi(weight)
			if err != nil {
				return fmt.Errorf("weight %q of block size %s: %w", weight, bytes, err)
			}
			share.Weight = n
		}
		*m = append(*m, share)
	}
	return nil
}

// workload is everything but the range, which needs the unit's block size.
func (o *options) workload() (load.Workload, error) {
	percent := map[string]int{"read": 100, "write": 0}
	pattern := strings.TrimPrefix(o.RW, "rand")
	reads, pure := percent[pattern]
	if !pure {
		reads = o.ReadPercent
	}
	if o.Connections < 1 || o.Connections > 1<<16-2 {
		return load.Workload{}, fmt.Errorf("%d connections, expected 1 to %d", o.Connections, 1<<16-2)
	}
	if o.LUNs < 1 || o.Verify && o.LUNs > 1 {
		return load.Workload{}, fmt.Errorf("%d logical units, expected one or more, and one to verify", o.LUNs)
	}
	return load.Workload{
		Depth: o.Depth, Rate: o.Rate, Sizes: o.Sizes, ReadPercent: reads, Random: pattern != o.RW,
		Seed: o.Seed, Verify: o.Verify, Warmup: o.Warmup, Runtime: o.Runtime,
		InTurns: o.InTurns, CPU: o.CPU, Send: int(o.Send), Poll: o.Poll, ServerPIDs: o.ServerPID,
	}, nil
}

// narrow sets the range in logical blocks.
func (o *options) narrow(w *load.Workload, u load.Unit) error {
	block := size(u.BlockSize)
	if o.Offset%block != 0 || o.Size%block != 0 {
		return fmt.Errorf("range of %d bytes from %d, expected multiples of the block size %d", o.Size, o.Offset, block)
	}
	w.FirstLBA, w.Blocks = uint64(o.Offset/block), uint64(o.Size/block)
	return nil
}

// session is how every connection logs in, apart from its ISID.
func (o *options) session() (initiator.Options, error) {
	s := initiator.Options{Initiator: o.Initiator, Target: o.Target.Target}
	for _, d := range o.Digest {
		if d == "header" {
			s.HeaderDigest = "CRC32C"
		} else {
			s.DataDigest = "CRC32C"
		}
	}
	for _, k := range o.Key {
		s.Keys = append(s.Keys, initiator.Key(k))
	}
	if o.CHAPUser == "" {
		return s, nil
	}
	s.CHAP = &initiator.CHAP{User: o.CHAPUser, MutualUser: o.MutualUser, Algorithms: o.CHAPAlgorithms}
	var err error
	if s.CHAP.Secret, err = readSecret(o.CHAPSecretFile); err != nil {
		return s, err
	}
	if o.MutualUser != "" {
		s.CHAP.MutualSecret, err = readSecret(o.MutualSecretFile)
	}
	return s, err
}

// readSecret reads a secret without its line end.
func readSecret(path string) ([]byte, error) {
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return bytes.TrimRight(secret, "\r\n"), nil
}
