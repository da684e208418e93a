package rdma

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"

	"lunar/internal/bulk/keyed"
	"lunar/internal/greetings"
	"lunar/iser/verbs"
)

// mostGreetings is how many control channels may be on their way in.
const mostGreetings = 8

// Listener awaits who sends.
type Listener struct {
	*keyed.Door[*Sink]
	engine    *engine
	config    *tls.Config
	address   netip.AddrPort
	greetings *greetings.Greetings
}

// Listen listens at an address for who has the key. The unspecified address is that of all
// devices. The provider is closed with the listener, or after an error.
func Listen(p verbs.Provider, address netip.AddrPort, key keyed.Key) (*Listener, error) {
	config, err := key.Config()
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	e, err := start(p)
	if err != nil {
		return nil, err
	}
	l := &Listener{Door: keyed.NewDoor[*Sink](), engine: e, config: config, greetings: greetings.New(mostGreetings, func(c net.Conn) { _ = c.Close() })}
	err = e.do(func() error {
		e.request = l.request
		id, err := e.events.Listen(address, mostGreetings)
		if err == nil {
			e.listeners[id], l.address = true, id.LocalAddr()
		}
		return err
	})
	if err != nil {
		e.finish()
		<-e.ended
		return nil, err
	}
	return l, nil
}

// Address is where it listens.
func (l *Listener) Address() string { return "rdma://" + l.address.String() }

// Close ends it, and the link of the last sender.
func (l *Listener) Close() error {
	err := l.Door.Close()
	l.engine.finish() // before those who are there are ended: nobody comes in behind them
	l.engine.order(func() {
		for _, w := range l.engine.wires {
			if _, greets := w.user.(*stream); greets && !w.ends {
				w.end(net.ErrClosed)
			}
		}
	})
	<-l.engine.ended
	return err
}

// request takes a connection request, or refuses it.
func (l *Listener) request(event *verbs.Event) {
	var err error
	switch private := event.Private[:]; {
	case l.engine.closing:
		err = net.ErrClosed
	case private[0] == controlChannel:
		err = l.control(event.ID)
	case private[0] == dataChannel:
		if s := l.Current(); s != nil {
			err = s.join(event.ID, bytes.Clone(private[1:1+keyed.HelloSize]))
			break
		}
		err = errors.New("nobody has a control channel")
	default:
		err = errors.New("found no channel of a move")
	}
	if err != nil { // the sender hears of a refusal, and no more: it may be anybody
		_ = event.ID.Reject(nil)
		_ = event.ID.Destroy()
	}
}

func (l *Listener) control(id verbs.ID) (err error) {
	s, from := newStream(), id.PeerAddr().Addr()
	if !l.greetings.Begin(s, l.ClassOf(from), from) {
		return errors.New("found too many senders")
	}
	if _, err = l.engine.wire(id, s, streamShape); err != nil {
		l.greetings.End(s)
		return err
	}
	if err := id.Accept(connParam()); err != nil {
		s.wire.end(err)
	}
	go l.greet(s)
	return nil
}

// greet takes a sender that has the key.
func (l *Listener) greet(raw *stream) {
	c, err := keyed.Server(context.Background(), raw, l.config)
	l.greetings.End(raw)
	if err != nil || !l.Enter(&Sink{Sink: keyed.NewSink(c), control: raw.wire}) {
		_ = raw.Close()
	}
}
