package bulk

import (
	"context"
	"errors"
	"fmt"

	"lunar/internal/pipeline/rftp"
)

// Offer is what a sender wants to send.
type Offer struct {
	Name     string
	Size     int64 // bytes
	Unit     int   // of a logical block in bytes
	Physical int   // of a physical block in bytes
	// Incremental: what was read again at the end of an earlier move need not be read.
	Incremental bool
}

// Place is where a volume is stored.
type Place struct {
	Volume  *Volume
	Journal *Journal
	// Verified: all that the journal has was read again after it was stored, and nobody has
	// written there since.
	Verified bool
}

// Received is what has come of Receive.
type Received struct {
	Offer
	Stored   int64 // blocks that were stored now
	Repeated int64 // blocks that were stored although the journal had them, as they were
	Kept     int64 // blocks that the journal had before
	Damaged  int64 // blocks that were damaged on their way
	Checksum Sum
	Sealed   bool // the file has cipher text; whoever finishes it says so
}

// Acceptance says how a volume is received.
type Acceptance struct {
	// Accept returns where a volume is to be stored. Its error is told to the sender.
	Accept   func(Offer) (*Place, error)
	Cores    int // for ciphers and digests
	Progress *Progress
}

// Receive stores a volume and returns when all of it is there, was read again and has the
// sender's checksum. The link is closed then. After an error the journal has what was
// stored.
func Receive(ctx context.Context, link SinkLink, a Acceptance) (Received, error) {
	r := &receiving{link: link, accept: a, progress: a.Progress, broken: make(chan struct{})}
	if r.progress == nil {
		r.progress = &Progress{}
	}
	stop := context.AfterFunc(ctx, func() { r.fail(ctx.Err()) })
	defer stop()
	err := r.greet()
	if err == nil {
		err = r.serve()
	}
	if err != nil {
		r.tell(err)
	}
	r.fail(errors.New("it has ended"))
	r.close()
	return r.Received, err
}

// greet agrees with the sender, and tells what is there already.
func (r *receiving) greet() error {
	channels := 1
	for {
		m, err := r.link.Receive()
		if err != nil {
			return err
		}
		r.session = m.Session
		switch m.Type {
		case rftp.BlockSizeReq:
			err = r.send(rftp.Message{Type: rftp.BlockSizeRsp, Size: BlockSize, OK: m.Size == BlockSize})
		case rftp.ChannelsReq:
			channels = int(min(max(m.Count, 1), mostChannel))
			err = r.send(rftp.Message{Type: rftp.ChannelsRsp, Count: uint64(channels)})
		case rftp.SessionReq:
			return r.begin(&m, channels)
		default:
			return fmt.Errorf("found %v, which a sender does not begin with", m.Type)
		}
		if err != nil {
			return err
		}
	}
}

// begin accepts the volume, and lets the sender's channels come in.
func (r *receiving) begin(m *rftp.Message, channels int) error {
	r.Offer = Offer{m.Name, int64(m.Size), int(m.Unit), int(m.Physical), m.Flags&rftp.FlagIncremental != 0}
	err := r.Offer.check()
	if err == nil {
		r.place, err = r.accept.Accept(r.Offer)
	}
	if err != nil {
		return errors.Join(err, r.send(rftp.Message{Type: rftp.SessionRsp, Text: err.Error()}))
	}
	if err := r.prepare(channels); err != nil {
		return err
	}
	if err := r.send(rftp.Message{Type: rftp.SessionRsp, OK: true}); err != nil {
		return err
	}
	sums := r.place.Journal.Sums
	for at := 0; ; {
		n := min(len(sums)-at, rftp.MaxSums)
		m := rftp.Message{Type: rftp.Digests, Sequence: uint64(at)}
		for _, s := range sums[at : at+n] {
			m.Sums = append(m.Sums, s)
		}
		if at += n; at == len(sums) {
			m.Flags = rftp.FlagLast
		}
		if err := r.send(m); err != nil || at == len(sums) {
			return err
		}
	}
}

// check refuses what no volume is.
func (o *Offer) check() error {
	if o.Size <= 0 || o.Size > 1<<56 || o.Unit < 512 || o.Unit > 1<<16 || o.Unit&(o.Unit-1) != 0 || o.Size%int64(o.Unit) != 0 {
		return fmt.Errorf("found a volume of %d bytes in blocks of %d, expected whole blocks of 512 or more", o.Size, o.Unit)
	}
	return nil
}

// serve takes blocks until the volume is whole.
func (r *receiving) serve() error {
	for {
		m, err := r.link.Receive()
		if err == nil {
			err = r.hear(&m)
		}
		switch {
		case errors.Is(err, errWhole):
			return nil
		case r.failure() != nil:
			return r.failure()
		case err != nil:
			return err
		}
	}
}

// errWhole ends serve.
var errWhole = errors.New("the volume is whole")

func (r *receiving) hear(m *rftp.Message) error {
	switch m.Type {
	case rftp.MRRequest:
		r.mu.Lock()
		c := r.sink.Requested()
		r.mu.Unlock()
		return r.grant(c)
	case rftp.BlockDone:
		return r.arrived(m)
	case rftp.DatasetComplete:
		if m.Flags&rftp.FlagReceived == 0 {
			return r.finish(m)
		}
		r.mu.Lock()
		r.question = m
		r.mu.Unlock()
		return r.answer()
	case rftp.Failed:
		return fmt.Errorf("the sender has ended it: %s", m.Text)
	}
	return fmt.Errorf("found %v, which a sender does not send now", m.Type)
}
