package daemon

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"lunar/control"
	"lunar/control/server"
	"lunar/internal/bulk"
	"lunar/internal/bulk/keyed"
)

// defaultChannels are the sockets that blocks go over.
const defaultChannels = 2

// SendVolume implements server.Source.
func (s *source) SendVolume(by server.Asker, volume string, k control.Send) (control.SentVolume, error) {
	out, err := s.changes.send(by, volume, k)
	return out, notMoved(fmt.Sprintf("volume %s was not sent", volume), err)
}

// send sends a volume as it is at one moment, that of the last pass.
func (a *applier) send(by server.Asker, volume string, k control.Send) (out control.SentVolume, err error) {
	key, err := keyed.ParseKey(k.Key)
	if err != nil {
		return out, err
	}
	r, err := a.readWhole(by, volume, sending)
	if err != nil {
		return out, err
	}
	defer func() {
		if err = r.close(a, err); err != nil {
			a.log.Warn("a volume was not sent", "volume", volume, "to", k.To, "bytes", r.progress.Moved(), "err", err)
		}
	}()
	defer r.telling(by, "volume "+volume)()
	a.log.Info("a volume is being sent", "volume", volume, "to", k.To)
	began := time.Now()
	link, err := dialMove(r.ctx, k.To, key)
	if err != nil {
		return out, fmt.Errorf("%w (lunar volume receive, on the other server, waits for it)", err)
	}
	known, err := a.knownOf(r, k.Incremental)
	if err == nil {
		err = r.begin(known)
	}
	if err != nil {
		return out, errors.Join(err, link.Close())
	}
	if k.Channels == 0 {
		k.Channels = defaultChannels
	}
	sent, err := bulk.Send(r.ctx, link, &r.origin, bulk.Options{Channels: k.Channels, Cores: moveCores(), Rate: k.Rate, Incremental: k.Incremental, Progress: &r.progress})
	if err != nil {
		return out, fmt.Errorf("%w; the same command goes on where it was", err)
	}
	if known != nil {
		if err := known.Learn(sent.Sums); err != nil {
			a.log.Warn("what was sent is not noted: the next incremental move reads all", "volume", volume, "err", err)
		}
	}
	took := time.Since(began).Round(time.Millisecond)
	a.log.Info("volume sent", "volume", volume, "to", k.To, "read", sent.Read, "sent", sent.Sent, "same", sent.Same, "altered", sent.Altered, "damaged", sent.Again,
		"bytes", r.progress.Moved(), "took", took, "rate", rateOf(r.progress.Moved(), took))
	return control.SentVolume{
		Size: r.origin.Size, Blocks: sent.Blocks, Read: sent.Read, Sent: sent.Sent, Same: sent.Same, Altered: sent.Altered, Damaged: sent.Again,
		Checksum: hex.EncodeToString(sent.Checksum[:]), Took: took.String(),
	}, nil
}

// rateOf is for a line of the log.
func rateOf(bytes int64, took time.Duration) string {
	return fmt.Sprintf("%.1f MiB/s", float64(bytes)/(1<<20)/max(took, time.Millisecond).Seconds())
}

// checksum reads a volume.
func (a *applier) checksum(by server.Asker, volume string) (out control.VolumeChecksum, err error) {
	r, err := a.readWhole(by, volume, comparing)
	if err != nil {
		return out, err
	}
	defer func() { err = r.close(a, err) }()
	defer r.telling(by, "volume "+volume)()
	began := time.Now()
	if err := r.begin(nil); err != nil {
		return out, err
	}
	sum, err := bulk.Checksum(r.ctx, &r.origin, moveCores(), &r.progress)
	return control.VolumeChecksum{Size: r.origin.Size, Checksum: hex.EncodeToString(sum[:]), Took: time.Since(began).Round(time.Millisecond).String()}, err
}
