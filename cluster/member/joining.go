package member

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
	"lunar/internal/greetings"
	"lunar/internal/loglimit"
)

// nameMost is how many bytes a node's name may have.
const nameMost = 64

// nodeName is what a node may be called: it is part of keys, and of etcd's lists.
var nodeName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,62}[A-Za-z0-9])?$`)

func (n Node) judge() error {
	switch {
	case !nodeName.MatchString(n.Name):
		return fmt.Errorf("node %q: expected letters, digits, dots and hyphens, 64 at most", n.shown())
	case n.Address == "" || net.ParseIP(n.Address).IsUnspecified() || net.ParseIP(n.Address).IsMulticast():
		return fmt.Errorf("node %s: found address %q, expected one by which the others reach it", n.Name, n.Address)
	case n.Port < 1 || n.Port > 65533:
		return fmt.Errorf("node %s: found port %d, expected three ports in a row from it on", n.Name, n.Port)
	}
	return nil
}

// shown is the name, of which a stranger may have made more than a log should have.
func (n Node) shown() string { return n.Name[:min(len(n.Name), 2*nameMost)] }

// isHere fails for an address that nothing can listen at on this machine, as etcd is to.
func (n Node) isHere() error {
	l, err := net.Listen("tcp", net.JoinHostPort(n.Address, "0"))
	if err != nil {
		return fmt.Errorf("node %s: found address %q, expected one of this machine, by which the others reach it: %w", n.Name, n.Address, err)
	}
	return l.Close()
}

// Init makes the first member of a new cluster.
func (d Dir) Init(cluster string, n Node, p Pace, quota int64) error {
	if !nodeName.MatchString(cluster) {
		return fmt.Errorf("cluster %q: expected letters, digits, dots and hyphens, 64 at most", cluster)
	}
	if err := errors.Join(n.judge(), n.isHere()); err != nil {
		return err
	}
	if p.Tick < 10*time.Millisecond || p.Election < 5*p.Tick || p.Election > 50*time.Second {
		return fmt.Errorf("found tick %v and election %v, expected at least 10ms, and five ticks to 50s", p.Tick, p.Election)
	}
	a, files, err := newAuthority(cluster)
	if err != nil {
		return err
	}
	key, keyText, err := newKey()
	if err != nil {
		return err
	}
	if files[ownKeyFile] = keyText; err != nil {
		return err
	}
	if files[ownFile], err = a.issue(n, &key.PublicKey, time.Now()); err != nil {
		return err
	}
	return d.lay(Settings{Version: settingsVersion, Cluster: cluster, Node: n, Pace: p, Quota: quota}, files)
}

// application is what a node asks a member with.
type application struct {
	Secret []byte `json:"secret"`
	Node   Node   `json:"node"`
	Public []byte `json:"public"` // key, PKIX
}

// admission is the answer: all that a member needs, the authority's key among it.
type admission struct {
	Settings  Settings `json:"settings"`
	Authority []byte   `json:"authority"`
	Signing   []byte   `json:"signing"`
	Own       []byte   `json:"own"`
}

// registry is the cluster's state with etcd's list of members: etcd.State.
type registry interface {
	cluster.State
	Members(context.Context) ([]etcd.Member, error)
	AddLearner(ctx context.Context, peer string) (etcd.Member, []etcd.Member, error)
	Remove(ctx context.Context, id uint64) error
}

// doorman admits nodes that have a token.
type doorman struct {
	dir      Dir
	settings Settings
	state    registry
	log      *slog.Logger
	heard    *loglimit.Journal // what strangers may write in the log
}

func newDoorman(d Dir, s Settings, state registry, log *slog.Logger) *doorman {
	return &doorman{d, s, state, log, loglimit.New(log, time.Now)}
}

// serve admits nodes at the member's third port until ctx ends.
func (d *doorman) serve(ctx context.Context) error {
	a, err := d.dir.authority()
	if err != nil {
		return err
	}
	own := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		own, err := d.dir.certificate()
		if err == nil {
			own.Certificate = append(own.Certificate, a.cert.Raw) // by whose pin it is known
		}
		return own, err
	}
	mux := http.NewServeMux()
	mux.Handle("POST "+joinPath, http.MaxBytesHandler(http.HandlerFunc(d.answer), maxApplication))
	var once http.Protocols
	once.SetHTTP1(true) // HTTP/2 has hundreds of questions at once on a connection
	server := &http.Server{
		Handler: mux, ReadTimeout: joinPatience, WriteTimeout: joinPatience, Protocols: &once,
		TLSConfig: &tls.Config{GetCertificate: own, MinVersion: tls.VersionTLS13},
		ErrorLog:  slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
	l, err := net.Listen("tcp", d.settings.Node.joining())
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	go d.heard.TellUntil(ctx.Done())
	hall := greetings.NewHall(greetings.Door{Listener: l, Told: func(why error) {
		d.log.Warn("nodes that join cannot be heard", "err", why)
	}}, mostGreetings)
	if err := server.ServeTLS(hall, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (d *doorman) answer(w http.ResponseWriter, r *http.Request) {
	var a application
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	given, err := d.admit(r.Context(), &a)
	if err != nil {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		d.heard.Logger(from, false).Warn("a node was not admitted to the cluster", "node", a.Node.shown(), "from", r.RemoteAddr, "err", err)
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	d.log.Info("a node was admitted to the cluster", "node", a.Node.Name, "address", a.Node.Address, "from", r.RemoteAddr)
	_ = json.NewEncoder(w).Encode(given) // who does not hear it asks again
}

// passing are errors after which the same application may succeed.
var passing = []error{etcd.ErrUnsettled, errTaken, cluster.ErrNoQuorum, cluster.ErrUnknown, context.DeadlineExceeded}

// statusOf tells whether to ask again.
func statusOf(err error) int {
	if slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
		return http.StatusServiceUnavailable
	}
	return http.StatusForbidden
}

// admit makes a node a learner, and gives it what it needs. Who asks again with the same key,
// since it has not heard the answer, gets the same.
func (d *doorman) admit(ctx context.Context, a *application) (*admission, error) {
	parsed, err := x509.ParsePKIXPublicKey(a.Public)
	public, ok := parsed.(*ecdsa.PublicKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("found no ECDSA key (error: %v)", err)
	}
	if err := a.Node.judge(); err != nil {
		return nil, err
	}
	if _, err := find(ctx, d.state, d.settings.Cluster, a, time.Now()); err != nil {
		return nil, err // strangers take no turns
	}
	members, err := d.place(ctx, a)
	if err != nil {
		return nil, err
	}
	given := &admission{Settings: d.settings}
	given.Settings.Node, given.Settings.Joined, given.Settings.Members, given.Settings.Clients = a.Node, true, a.Node.others(members), nil
	for _, m := range members {
		if !slices.Contains(m.Peers, a.Node.peer()) {
			given.Settings.Clients = append(given.Settings.Clients, m.Clients...)
		}
	}
	return given, d.certify(given, public)
}

// others are where the etcd of members other than the node is reached, by their names. One that has
// not started has none yet, and its number instead.
func (n Node) others(members []etcd.Member) map[string]string {
	all := map[string]string{}
	for _, m := range members {
		if len(m.Peers) > 0 && !slices.Contains(m.Peers, n.peer()) {
			all[cmp.Or(m.Name, fmt.Sprintf("%x", m.ID))] = m.Peers[0]
		}
	}
	return all
}

// mostGreetings is how many connections the port by which nodes join has at a time.
const mostGreetings = 64

// admitting is after how long another member may admit nodes when one has died that was about to.
const admitting = 5 * time.Second

// place has a node be a learner, and returns all members. Members do so one at a time, since what they
// decide by is not etcd's to compare: a name is known only when its node has started.
func (d *doorman) place(ctx context.Context, a *application) (members []etcd.Member, err error) {
	key := keysOf(d.settings.Cluster) + "admission"
	err = settled(ctx, func() error {
		return turn(ctx, d.state, key, d.settings.Node.Name, admitting, func(ctx context.Context) (err error) {
			members, err = d.add(ctx, a)
			return err
		})
	})
	return members, err
}

// add is place of who has the turn. A member may die behind each of its steps, and another one, which
// the same application comes to, goes on.
func (d *doorman) add(ctx context.Context, a *application) ([]etcd.Member, error) {
	t, err := find(ctx, d.state, d.settings.Cluster, a, time.Now())
	if err != nil {
		return nil, err
	}
	members, err := d.state.Members(ctx)
	if err != nil || t.mine && slices.ContainsFunc(members, a.Node.admitted) {
		return members, err
	}
	if err := d.makeRoom(ctx, members, a.Node); err != nil {
		return nil, err
	}
	if err := spend(ctx, d.state, t); err != nil {
		return nil, err
	}
	if _, members, err = d.state.AddLearner(ctx, a.Node.peer()); err == nil {
		return members, nil
	}
	// An earlier attempt without an outcome may have come late: then etcd refuses another one.
	if members, failed := d.state.Members(ctx); failed == nil && slices.ContainsFunc(members, a.Node.admitted) {
		return members, nil
	}
	return nil, err
}

// admitted reports whether a member is the node, which has not started yet.
func (n Node) admitted(m etcd.Member) bool {
	return m.Name == "" && m.Learner && slices.Contains(m.Peers, n.peer())
}

// settled changes members, which waits for those that have come a short time ago, or are
// about to, and for other members' turns.
func settled(ctx context.Context, change func() error) error {
	ctx, end := context.WithTimeout(ctx, joinPatience/2)
	defer end()
	for {
		err := change()
		if !errors.Is(err, etcd.ErrUnsettled) && !errors.Is(err, errTaken) {
			return err
		}
		select {
		case <-time.After(interval / 4):
		case <-ctx.Done():
			return err
		}
	}
}

// makeRoom removes what is left of an earlier attempt of a node. It fails if its name is
// another's, and with ErrUnsettled as long as somebody who was admitted has not started.
func (d *doorman) makeRoom(ctx context.Context, members []etcd.Member, n Node) error {
	for _, m := range members {
		switch {
		case n.admitted(m):
			if err := d.state.Remove(ctx, m.ID); err != nil {
				return err
			}
		case m.Name == n.Name:
			return fmt.Errorf("node %s at %v is a member already: lunar cluster leave %s removes it, if it is gone for good", m.Name, m.Peers, m.Name)
		case slices.Contains(m.Peers, n.peer()):
			return fmt.Errorf("found address %s and port %d of node %s, expected node %s's own", n.Address, n.Port, m.Name, n.Name)
		case m.Name == "":
			return fmt.Errorf("a node at %v was admitted and has not started yet: start lunar-etcd there, or remove it by lunar cluster leave %x (%w)", m.Peers, m.ID, etcd.ErrUnsettled)
		}
	}
	return nil
}

// certify adds certificates and keys to an admission.
func (d *doorman) certify(given *admission, public *ecdsa.PublicKey) error {
	a, err := d.dir.authority()
	if err != nil {
		return err
	}
	given.Authority = certText(a.cert.Raw)
	if given.Signing, err = privateText(a.key); err != nil {
		return err
	}
	given.Own, err = a.issue(given.Settings.Node, public, time.Now())
	return err
}
