package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/cluster"
)

// client asks members, one at a time: the one that answered last.
type client struct {
	http     *http.Client
	patience time.Duration
	closed   context.Context
	close    context.CancelFunc

	mu      sync.Mutex
	members []string // their URLs; the first one is asked
	left    chan struct{}
}

// connectPatience is how long a connection may take to come about.
const connectPatience = time.Second

func newClient(members []string, settings *tls.Config, patience time.Duration) *client {
	dialer := net.Dialer{
		Timeout: connectPatience,
		// A machine that has vanished is noticed also where nothing is sent: by a Watch.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 2 * time.Second, Interval: time.Second, Count: 3},
	}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: settings, TLSHandshakeTimeout: connectPatience, MaxIdleConnsPerHost: 8,
		// A connection for each request under way: one that hangs holds up no other.
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	c := &client{http: &http.Client{Transport: transport}, patience: patience, members: slices.Clone(members), left: make(chan struct{})}
	c.closed, c.close = context.WithCancel(context.Background())
	return c
}

// here returns the member that is asked now, and a channel that is closed when another one
// is asked instead.
func (c *client) here() (member string, left <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[0], c.left
}

// leave has the next member be asked instead of one that did not answer.
func (c *client) leave(member string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members[0] == member {
		c.members = append(c.members[1:], member)
		close(c.left)
		c.left = make(chan struct{})
	}
}

// learn takes over which members there are. The one that is asked stays, if it is there.
func (c *client) learn(members []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(members) == 0 {
		return
	}
	if !slices.Contains(members, c.members[0]) {
		close(c.left)
		c.left = make(chan struct{})
		c.members = slices.Clone(members)
		return
	}
	rest := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == c.members[0] })
	c.members = append([]string{c.members[0]}, rest...)
}

// refusal is a member's answer that says no.
type refusal struct {
	Code    int    `json:"code"` // of gRPC
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Message }

// unsent is an error before anything was sent.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

// post sends a request to a member and returns the body of its answer, which the caller
// closes.
func (c *client) post(ctx context.Context, member, path string, request any) (io.ReadCloser, error) {
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, member+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Grpc-Metadata-Hasleader", "true") // rpctypes.MetadataRequireLeaderKey
	answer, err := c.http.Do(r)
	if err != nil {
		if !connected.Load() {
			err = unsent{err}
		}
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	if err != nil {
		return nil, err
	}
	if said := refusalIn(body); said != nil {
		return nil, said
	}
	return nil, errors.New(answer.Status)
}

// refusalIn reads a refusal: of a single answer, or of a stream's first message; nil: it is
// neither, but of somebody in between.
func refusalIn(body []byte) *refusal {
	var stream streamed[struct{}]
	if json.Unmarshal(body, &stream) == nil && stream.Error != nil {
		return stream.Error
	}
	single := &refusal{}
	if json.Unmarshal(body, single) != nil || single.Message == "" {
		return nil
	}
	return single
}

// do asks a member once and reads its answer, or the first message of it.
func (c *client) do(ctx context.Context, member, path string, request, answer any) error {
	body, err := c.post(ctx, member, path, request)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(answer); err != nil {
		return err
	}
	if stream, is := answer.(interface{ failure() error }); is {
		return stream.failure()
	}
	return nil
}

// outcome is what is known of a request that failed.
type outcome int

const (
	open    outcome = iota // it may have been done, or will be
	nothing                // nothing has come of it; another member, or another time, may do
	refused                // nothing has come of it, and nothing would
)

// meanings are the refusals that say what has become of a request, by their text: gRPC's
// codes have too few kinds. They are the same since etcd 3.4 (api/v3rpc/rpctypes).
var meanings = map[string]struct {
	outcome outcome
	err     error
}{
	"etcdserver: no leader":                                                 {nothing, cluster.ErrNoQuorum},
	"etcdserver: too many requests":                                         {nothing, cluster.ErrNoQuorum},
	"etcdserver: rpc not supported for learner":                             {nothing, cluster.ErrNoQuorum},
	"etcdserver: not capable":                                               {nothing, cluster.ErrNoQuorum},
	"etcdserver: mvcc: database space exceeded":                             {refused, cluster.ErrFull},
	"etcdserver: requested lease not found":                                 {refused, cluster.ErrNoLease},
	"etcdserver: mvcc: required revision has been compacted":                {refused, cluster.ErrCompacted},
	"etcdserver: re-configuration failed due to not enough started members": {refused, ErrUnsettled},
	"etcdserver: unhealthy cluster":                                         {refused, ErrUnsettled},
}

// The codes of gRPC that say that nothing was done: INVALID_ARGUMENT, NOT_FOUND,
// ALREADY_EXISTS, PERMISSION_DENIED, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED,
// UNAUTHENTICATED.
var refusingCodes = []int{3, 5, 6, 7, 9, 11, 12, 16}

// judge says what is known of a request that failed, and returns the error to report.
func judge(err error) (outcome, error) {
	var said *refusal
	if errors.As(err, &said) {
		if m, known := meanings[said.Message]; known {
			return m.outcome, fmt.Errorf("%w (%w)", m.err, err)
		}
		if slices.Contains(refusingCodes, said.Code) {
			return refused, err
		}
	}
	if errors.As(err, &unsent{}) {
		return nothing, err
	}
	return open, err
}

// An attempt may take a third of the patience, so that others have time to answer. What a
// member sends to a leader that is dead is lost without an answer, also that of a change.
const attempts, pause = 3, 20 * time.Millisecond // between two of them

// ask asks members until one has answered, for no longer than patience. What may be
// asked again is (again), else only if nothing can have come of it.
func (c *client) ask(ctx context.Context, path string, request, answer any, again bool) error {
	if c.closed.Err() != nil {
		return cluster.ErrClosed
	}
	whole, end := context.WithTimeout(ctx, c.patience)
	defer end()
	defer context.AfterFunc(c.closed, end)()
	for {
		member, _ := c.here()
		attempt, end := context.WithTimeout(whole, c.patience/attempts)
		err := c.do(attempt, member, path, request, answer)
		end()
		if err == nil {
			return nil
		}
		known, err := judge(err)
		if known == refused {
			return fmt.Errorf("%s%s: %w", member, path, err)
		}
		if c.leave(member); known == open && !again {
			return fmt.Errorf("%s%s: %w: %w", member, path, cluster.ErrUnknown, err)
		}
		select {
		case <-time.After(pause):
		case <-whole.Done():
			if c.closed.Err() != nil {
				return cluster.ErrClosed
			}
			if !errors.Is(err, cluster.ErrNoQuorum) { // else it says so by itself
				err = fmt.Errorf("%w: %w", cluster.ErrNoQuorum, err)
			}
			return fmt.Errorf("%s%s: %w", member, path, err)
		}
	}
}
