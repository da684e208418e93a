package daemon

import (
	"context"
	"slices"
	"time"

	"lunar/cluster/etcd"
)

// roomEvery is how often it is looked whether the cluster's state takes changes. etcd keeps leases alive
// also while it does not, so that nothing else tells before a volume is to be taken over.
const roomEvery = 10 * time.Second

// alarmed is a state that tells of its members: etcd.State.
type alarmed interface {
	Alarms(context.Context) ([]etcd.Alarm, error)
}

// watchRoom keeps whether the cluster's state is full, and why it does not answer, until ctx ends.
func (m *membership) watchRoom(ctx context.Context) {
	s, ok := m.state.(alarmed)
	if !ok {
		return
	}
	for {
		within, cancel := context.WithTimeout(ctx, roomEvery)
		all, err := s.Alarms(within)
		cancel()
		m.heardOf(all, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(roomEvery):
		}
	}
}

func (m *membership) heardOf(all []etcd.Alarm, err error) {
	if err == nil {
		m.full.Store(slices.ContainsFunc(all, func(a etcd.Alarm) bool { return a.Kind == etcd.NoSpace }))
		m.failure.Store(nil)
		return
	}
	text := err.Error()
	m.failure.Store(&text)
}

// whyAlone adds to a reason why this node has no place in its cluster what etcd's silence comes from, such as a
// certificate that is not valid by this machine's clock.
func (m *membership) whyAlone(why string, mute bool) string {
	if text := m.failure.Load(); mute && why != "" && text != nil {
		return why + "; " + *text
	}
	return why
}
