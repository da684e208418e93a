package member

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
)

// token is what lets one node join: whom to ask, how to know that it is the cluster, and
// a secret that works once.
type token struct {
	Members []string `json:"m"` // where members admit others: host:port
	Pin     []byte   `json:"p"`
	Secret  []byte   `json:"s"`
}

const tokenMark = "lunar-join-"

// String is what an administrator carries. It is a secret.
func (t token) text() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // there is nothing in it that JSON has not
	}
	return tokenMark + base64.RawURLEncoding.EncodeToString(text)
}

// tokenOf reads what text wrote.
func tokenOf(text string) (t token, err error) {
	coded, marked := strings.CutPrefix(strings.TrimSpace(text), tokenMark)
	raw, err := base64.RawURLEncoding.DecodeString(coded)
	if marked && (err != nil || !json.Valid(raw)) {
		return t, errors.New("found a part of a token, or one with a mistake, expected all that lunar cluster token has printed")
	}
	if !marked || err != nil || json.Unmarshal(raw, &t) != nil || len(t.Members) == 0 || len(t.Secret) == 0 {
		return t, errors.New("found no token, expected what lunar cluster token has printed (" + tokenMark + "...)")
	}
	return t, nil
}

// ticket is what the cluster's state has of a token: enough to know it, and not to make it.
type ticket struct {
	Version int       `json:"version"`
	Sum     []byte    `json:"sum"` // SHA-256 of the secret
	Until   time.Time `json:"until"`
	// By is SHA-256 of the application that has used it; empty: none has. The same one may be
	// made again.
	By []byte `json:"by,omitempty"`
}

// found is a ticket as it was read.
type found struct {
	ticket
	cluster.Item
	by   []byte // who asks
	mine bool   // and has used it before
}

// ticketsOf is the prefix of tickets, which are named by the beginning of their sums.
func ticketsOf(cluster string) string { return keysOf(cluster) + "tokens/" }

// keysOf is the prefix of the keys of this package.
func keysOf(name string) string { return cluster.KeysOf(name).All() + "etcd/" }

func ticketKey(name string, sum []byte) string { return ticketsOf(name) + hex.EncodeToString(sum[:8]) }

// NewToken makes a token by which one node can join within a time. It fails as
// cluster.State.Commit does.
func (d Dir) NewToken(ctx context.Context, state *etcd.State, lasting time.Duration) (string, error) {
	s, err := d.Settings()
	if err != nil {
		return "", err
	}
	a, err := d.authority()
	if err != nil {
		return "", err
	}
	members, err := state.Members(ctx)
	if err != nil {
		return "", err
	}
	t := token{Members: doors(s.Node, members), Pin: pinOf(a.cert), Secret: make([]byte, 16)}
	_, _ = rand.Read(t.Secret) // does not fail
	sum := sumOf(t.Secret)
	value, err := json.Marshal(ticket{Version: 1, Sum: sum, Until: time.Now().Add(lasting)})
	if err != nil {
		return "", err
	}
	changes, err := oldTickets(ctx, state, s.Cluster, time.Now())
	if err != nil {
		return "", err
	}
	_, err = state.Commit(ctx, nil, append(changes, cluster.Change{Key: ticketKey(s.Cluster, sum), Value: value}))
	return t.text(), err
}

// doors are where members admit others, this one's first: it may be gone when the token is used.
func doors(own Node, members []etcd.Member) []string {
	out := []string{own.joining()}
	for _, m := range members {
		for _, peer := range m.Peers {
			u, err := url.Parse(peer)
			if err != nil || m.Name == "" || m.Learner {
				continue
			}
			port, err := strconv.Atoi(u.Port())
			if n := (Node{Address: u.Hostname(), Port: port}); err == nil && !slices.Contains(out, n.joining()) {
				out = append(out, n.joining())
			}
		}
	}
	return out
}

// errNoTicket does not say which of the reasons it is.
var errNoTicket = errors.New("the token is unknown, was used, or is too old: lunar cluster token makes another")

// find returns what the cluster knows of an application's secret, which somebody else has not
// used.
func find(ctx context.Context, state cluster.State, name string, a *application, now time.Time) (found, error) {
	sum := sumOf(a.Secret)
	items, _, err := state.Get(ctx, ticketKey(name, sum))
	if err != nil {
		return found{}, err
	}
	for _, i := range items {
		t := found{Item: i, by: a.sum()}
		if json.Unmarshal(i.Value, &t.ticket) != nil || subtle.ConstantTimeCompare(t.Sum, sum) == 0 || now.After(t.Until) {
			continue
		}
		if t.mine = bytes.Equal(t.By, t.by); t.mine || len(t.By) == 0 {
			return t, nil
		}
	}
	return found{}, errNoTicket
}

// sum tells an application from others: nobody else has the key.
func (a *application) sum() []byte {
	return sumOf(fmt.Appendf(nil, "%q %q %d %x", a.Node.Name, a.Node.Address, a.Node.Port, a.Public))
}

func sumOf(text []byte) []byte {
	sum := sha256.Sum256(text)
	return sum[:]
}

// spend notes who has used a ticket. It fails if somebody else has.
func spend(ctx context.Context, state cluster.State, t found) error {
	if t.mine {
		return nil
	}
	t.By = t.by
	value, err := json.Marshal(t.ticket)
	if err != nil {
		return err
	}
	_, err = state.Commit(ctx, []cluster.Condition{{Key: t.Key, Modified: t.Modified}}, []cluster.Change{{Key: t.Key, Value: value}})
	if errors.Is(err, cluster.ErrConflict) {
		return errNoTicket
	}
	return err
}

// mostOld is how many old tickets go at once: etcd takes 128 changes.
const mostOld = 100

// oldTickets are deletions of those that are too old.
func oldTickets(ctx context.Context, state cluster.State, name string, now time.Time) (old []cluster.Change, err error) {
	items, _, err := state.Get(ctx, ticketsOf(name))
	for _, i := range items {
		var t ticket
		if len(old) < mostOld && (json.Unmarshal(i.Value, &t) != nil || now.After(t.Until)) {
			old = append(old, cluster.Change{Key: i.Key, Delete: true})
		}
	}
	return old, err
}
