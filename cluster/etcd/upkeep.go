package etcd

import (
	"context"
	"errors"
	"slices"
	"time"

	"lunar/cluster"
)

// Member is one of etcd's.
type Member struct {
	ID      uint64   `json:"ID,string"`
	Name    string   `json:"name"` // empty until it has started for the first time
	Peers   []string `json:"peerURLs"`
	Clients []string `json:"clientURLs"`
	Learner bool     `json:"isLearner"` // it has no vote yet
}

// ErrUnsettled says that members do not change as long as one of them is not there, or has
// been there for some seconds only.
var ErrUnsettled = errors.New("not all members of the cluster have been there for some seconds")

type memberAnswer struct {
	Added   Member   `json:"member"`
	Members []Member `json:"members"`
}

type memberRequest struct {
	ID           uint64   `json:"ID,string,omitempty"`
	Peers        []string `json:"peerURLs,omitempty"`
	Learner      bool     `json:"isLearner,omitempty"`
	Linearizable bool     `json:"linearizable,omitempty"`
}

// Members returns all members. It fails with ErrNoQuorum.
func (s *State) Members(ctx context.Context) ([]Member, error) {
	var a memberAnswer
	err := s.c.ask(ctx, "/v3/cluster/member/list", memberRequest{Linearizable: true}, &a, true)
	return a.Members, err
}

// AddLearner has somebody be a member without a vote, whom the others reach at peer, and
// returns it and all members. A member with a vote that has not started yet would count
// for the quorum. It fails with ErrUnsettled.
func (s *State) AddLearner(ctx context.Context, peer string) (Member, []Member, error) {
	var a memberAnswer
	err := s.c.ask(ctx, "/v3/cluster/member/add", memberRequest{Peers: []string{peer}, Learner: true}, &a, false)
	return a.Added, a.Members, err
}

// Promote gives a learner its vote, as soon as it has what the others have.
func (s *State) Promote(ctx context.Context, id uint64) error {
	return s.c.ask(ctx, "/v3/cluster/member/promote", memberRequest{ID: id}, &memberAnswer{}, false)
}

// Remove has somebody be a member no longer. etcd refuses what would leave no quorum.
func (s *State) Remove(ctx context.Context, id uint64) error {
	return s.c.ask(ctx, "/v3/cluster/member/remove", memberRequest{ID: id}, &memberAnswer{}, false)
}

// Status is what one member says of itself.
type Status struct {
	Version string `json:"version"`
	Size    int64  `json:"dbSize,string"`      // bytes of its file
	InUse   int64  `json:"dbSizeInUse,string"` // that Defragment leaves
	Leader  uint64 `json:"leader,string"`      // 0: it knows of none
	Header  struct {
		Member   uint64 `json:"member_id,string"`
		Revision int64  `json:"revision,string"`
	} `json:"header"`
	Learner bool `json:"isLearner"`
}

// Status asks the member at a URL alone.
func (s *State) Status(ctx context.Context, url string) (st Status, err error) {
	ctx, end := context.WithTimeout(ctx, s.c.patience)
	defer end()
	return st, s.c.do(ctx, url, "/v3/maintenance/status", struct{}{}, &st)
}

// Compact forgets the revisions up to one, on all members.
func (s *State) Compact(ctx context.Context, to cluster.Revision) error {
	r := struct {
		Revision int64 `json:"revision,string"`
		Physical bool  `json:"physical"`
	}{int64(to), true}
	return s.c.ask(ctx, "/v3/kv/compaction", r, &struct{}{}, false)
}

// Defragment has the member at a URL write its file anew, without what is not in use. It
// answers nobody meanwhile.
func (s *State) Defragment(ctx context.Context, url string) error {
	return s.c.do(ctx, url, "/v3/maintenance/defragment", struct{}{}, &struct{}{})
}

// Alarm is one that etcd has raised for a member, and that stays until it is disarmed.
type Alarm struct {
	Member uint64 `json:"memberID,string"`
	Kind   string `json:"alarm"` // NoSpace, or CORRUPT
}

// NoSpace is the alarm of a member whose file has reached its quota: nothing is written
// any more, on any member.
const NoSpace = "NOSPACE"

type alarmRequest struct {
	Action string `json:"action"`
	Alarm
}

// Alarms returns those that are raised.
func (s *State) Alarms(ctx context.Context) ([]Alarm, error) {
	var a struct {
		Alarms []Alarm `json:"alarms"`
	}
	err := s.c.ask(ctx, "/v3/maintenance/alarm", alarmRequest{"GET", Alarm{Kind: "NONE"}}, &a, true)
	return a.Alarms, err
}

// Disarm ends an alarm. etcd raises it again if its cause is still there.
func (s *State) Disarm(ctx context.Context, a Alarm) error {
	return s.c.ask(ctx, "/v3/maintenance/alarm", alarmRequest{"DEACTIVATE", a}, &struct{}{}, true)
}

// discoveries is how often the members are asked which there are: who knows of one that has
// died alone knows of none.
const discoveries = 10 * time.Second

// discover learns of members that came and went.
func (s *State) discover() {
	for wait := time.Duration(0); ; {
		select {
		case <-time.After(wait):
		case <-s.c.closed.Done():
			return
		}
		wait = probes
		members, err := s.Members(s.c.closed)
		if err != nil {
			continue
		}
		wait = discoveries
		var urls []string
		for _, m := range members {
			if !m.Learner {
				urls = append(urls, m.Clients...)
			}
		}
		slices.Sort(urls)
		s.c.learn(urls)
	}
}
