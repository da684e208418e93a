package admin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	"lunar/control"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// moving are the commands of "lunar volume" that move volumes between servers, and compare
// them.
type moving struct {
	Send     sendCommand     `cmd:"" help:"Send a volume to another server, where lunar volume receive waits for it. What that has already is not sent."`
	Receive  receiveCommand  `cmd:"" help:"Receive a volume from another server, and serve it once it is whole. After a break, the same command goes on where it was."`
	Checksum checksumCommand `cmd:"" help:"Read a volume and tell its checksum, which another server tells of an equal volume."`
	Scrub    scrubCommand    `cmd:"" help:"Compare the members of a mirror, beside the initiators. What one cannot read it gets from the other."`
}

type sendCommand struct {
	asking       `embed:""`
	asynchronous `embed:""`
	Volume       string `arg:"" help:"Name of the volume. It may be in use: what is sent is as it is at the end, while commands are held for a moment."`
	Destination  string `arg:"" help:"host:port of the server that receives it, without a port: 3262. rdma://host:port goes over RDMA."`
	KeyFile      string `required:"" type:"path" placeholder:"FILE" help:"The one-time key that lunar volume receive has made."`
	Rate         int64  `placeholder:"MIB" help:"At most so many MiB in a second."`
	Channels     int    `placeholder:"N" help:"Connections for data, 1 to 8. Default: 2."`
	Incremental  bool   `help:"Note from now on which blocks are written: the next send with this flag reads and sends only these."`
}

// Run sends a volume.
func (k sendCommand) Run(ctx context.Context, c cli.Console) error {
	key, err := readMoveKey(k.KeyFile)
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		s := control.Send{To: withPort(k.Destination), Key: key, Rate: k.Rate << 20, Channels: k.Channels, Incremental: k.Incremental}
		out, ended, err := awaitedJob[control.SentVolume](ctx, k.asynchronous, api, c, func() (control.Job, error) { return api.StartSend(ctx, k.Volume, s) })
		if err != nil || !ended {
			return err
		}
		_, err = fmt.Fprintf(c.Out, "Sent: %s, %s in %s. Blocks of 1 MiB: %d, read %d, sent %d, there already %d, written meanwhile %d, damaged on their way %d.\nChecksum: %s; the other server has the same.\n",
			k.Volume, bytesize.Text(out.Size), out.Took, out.Blocks, out.Read, out.Sent, out.Same, out.Altered, out.Damaged, out.Checksum)
		return err
	})
}

type receiveCommand struct {
	asking       `embed:""`
	asynchronous `embed:""`
	Volume       string `arg:"" help:"Name that the volume gets here."`
	Path         string `arg:"" help:"File that becomes the volume's; at the server, where it must not be there yet."`
	KeyFile      string `required:"" type:"path" placeholder:"FILE" help:"File for the one-time key, which is made if it is not there. Take it to who sends."`
	Listen       string `default:":3262" placeholder:"ADDRESS:PORT" help:"Where the server waits for the other one. Default: ${default}, all addresses. rdma://ADDRESS:PORT is over RDMA."`
	Standby      bool   `help:"Do not serve it when it is whole: receive again later, for what has changed since."`
	keyed        `embed:""`
}

// Run receives a volume.
func (k receiveCommand) Run(ctx context.Context, c cli.Console) error {
	key, err := readMoveKey(k.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if key, err = makeMoveKey(k.KeyFile); err == nil {
			fmt.Fprintf(c.Err, "made %s: take it to the server that sends, and remove it there and here afterwards\n", k.KeyFile)
		}
	}
	if err != nil {
		return err
	}
	config, err := k.object()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		r := control.Receive{Path: k.Path, Listen: k.Listen, Key: key, Standby: k.Standby, Configuration: config}
		out, ended, err := awaitedJob[control.ReceivedVolume](ctx, k.asynchronous, api, c, func() (control.Job, error) { return api.StartReceive(ctx, k.Volume, r) })
		if err != nil || !ended {
			return err
		}
		return tellReceived(c.Out, k.Volume, &out)
	})
}

func tellReceived(w io.Writer, volume string, r *control.ReceivedVolume) error {
	served := "It is served as " + volume + ", once a target has it: lunar lun create."
	if !r.Served {
		served = "It is not served: receive again, without --standby at last."
	}
	_, err := fmt.Fprintf(w, "Received: %s of %s, as %s. Blocks of 1 MiB: stored %d, there before %d.\nChecksum: %s\n%s\n",
		iscsiname.Printable(r.Source), bytesize.Text(r.Size), iscsiname.Printable(r.Path), r.Stored, r.Kept, r.Checksum, served)
	return err
}

type checksumCommand struct {
	asking       `embed:""`
	asynchronous `embed:""`
	Volume       string `arg:"" help:"Name of the volume. It may be in use: the checksum is that of a moment."`
	Expect       string `placeholder:"CHECKSUM" help:"Exit status 1 if it is another one, such as that of the other server."`
}

// Run tells a checksum.
func (k checksumCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		out, ended, err := awaitedJob[control.VolumeChecksum](ctx, k.asynchronous, api, c, func() (control.Job, error) { return api.StartChecksum(ctx, k.Volume) })
		if err != nil || !ended {
			return err
		}
		if k.Expect != "" && !strings.EqualFold(k.Expect, out.Checksum) {
			return fmt.Errorf("volume %s: found checksum %s, expected %s", k.Volume, out.Checksum, k.Expect)
		}
		_, err = fmt.Fprintln(c.Out, out.Checksum)
		return err
	})
}

type scrubCommand struct {
	asking       `embed:""`
	asynchronous `embed:""`
	Volume       string `arg:"" help:"Name of a volume of type mirror."`
}

// Run compares a mirror's members.
func (k scrubCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		out, ended, err := awaitedJob[control.Scrubbed](ctx, k.asynchronous, api, c, func() (control.Job, error) { return api.StartScrub(ctx, k.Volume) })
		if err != nil || !ended {
			return err
		}
		if out.Regions > 0 {
			return fmt.Errorf("volume %s: found %d regions in which the members differ, expected none; the first ones begin at bytes %v, and nobody knows which member is right", k.Volume, out.Regions, out.Differs)
		}
		_, err = fmt.Fprintf(c.Out, "volume %s: %s compared in %s, the members are alike; %s could not be read on one of them, and were mended\n",
			k.Volume, bytesize.Text(out.Compared), out.Took, bytesize.Text(out.Mended))
		return err
	})
}

// awaitedJob begins a job, for what takes longer than an answer may, and waits for it unless
// nobody wants that.
func awaitedJob[T any](ctx context.Context, k asynchronous, api *control.Client, c cli.Console, start func() (control.Job, error)) (out T, ended bool, err error) {
	j, err := start()
	if err != nil {
		return out, false, err
	}
	if k.Async {
		_, err = fmt.Fprintf(c.Out, "Job %s goes on: lunar jobs %s --wait says what has come of it.\n", j.ID, j.ID)
		return out, false, err
	}
	if j, err = awaited(ctx, api, c, j.ID); err == nil {
		err = j.Into(&out)
	}
	return out, true, err
}

func withPort(destination string) string {
	host, over := strings.CutPrefix(destination, control.MoveOverRDMA)
	if over {
		return control.MoveOverRDMA + withPort(host)
	}
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), control.DefaultMovePort)
}

// readMoveKey reads a one-time key, which others must not be able to read.
func readMoveKey(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%s: found mode %04o, expected a file that others cannot read (chmod go= %s)", path, info.Mode().Perm(), path)
	}
	text, err := io.ReadAll(io.LimitReader(f, 128))
	return strings.TrimSpace(string(text)), err
}

func makeMoveKey(path string) (string, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	text := base64.RawURLEncoding.EncodeToString(key)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text + "\n")
	return text, errors.Join(err, f.Close())
}
