package member

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lunar/cluster"
	"lunar/cluster/mem"
)

// door answers applications as a member does, with the statuses of a test in order.
type door struct {
	*httptest.Server
	pin     []byte
	asked   atomic.Int32
	answers []int
	hears   func(*application)
}

func newDoor(t *testing.T, answers ...int) *door {
	t.Helper()
	a, _, err := newAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	key, keyText, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := a.issue(Node{Name: "n1", Address: "127.0.0.1", Port: 7421}, &key.PublicKey, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, keyText)
	if err != nil {
		t.Fatal(err)
	}
	pair.Certificate = append(pair.Certificate, a.cert.Raw)
	d := &door{pin: pinOf(a.cert), answers: answers}
	d.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked application
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.Node.Name != "n2" {
			t.Errorf("found %+v, %v", asked, err)
		}
		if d.hears != nil {
			d.hears(&asked)
		}
		status := d.answers[min(int(d.asked.Add(1)), len(d.answers))-1]
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		_ = json.NewEncoder(w).Encode(admission{Settings: Settings{Cluster: "test"}})
	}))
	d.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	d.StartTLS()
	t.Cleanup(d.Close)
	return d
}

func (d *door) at() string { return d.Listener.Addr().String() }

// asks applies at some members until one has answered, and returns what it was told meanwhile.
func asks(ctx context.Context, pin []byte, members ...string) (given admission, told []string, err error) {
	text, err := json.Marshal(application{Node: Node{Name: "n2"}})
	if err != nil {
		return given, nil, err
	}
	a := applicant{token{Members: members}, text, newClient(pin), func(why error) { told = append(told, why.Error()) }}
	given, err = a.apply(ctx)
	return given, told, err
}

// TestApplyAgain: what passes is asked for again, with a word of why, and what does not is not.
func TestApplyAgain(t *testing.T) {
	busy := newDoor(t, http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK)
	given, told, err := asks(t.Context(), busy.pin, busy.at())
	if err != nil || given.Settings.Cluster != "test" || busy.asked.Load() != 3 || len(told) != 1 || !strings.Contains(told[0], "Service Unavailable") {
		t.Errorf("found %+v, %q, %v after %d questions", given, told, err, busy.asked.Load())
	}
	refusing := newDoor(t, http.StatusForbidden)
	if _, told, err := asks(t.Context(), refusing.pin, refusing.at()); err == nil || !strings.Contains(err.Error(), "Forbidden") || len(told) != 0 {
		t.Errorf("refused: found %q, %v", told, err)
	}
	gone := newDoor(t, http.StatusOK)
	gone.Close()
	well := newDoor(t, http.StatusOK)
	if _, told, err := asks(t.Context(), well.pin, gone.at(), well.at()); err != nil || len(told) != 0 {
		t.Errorf("one of two is gone: found %q, %v", told, err)
	}
	if _, _, err := asks(t.Context(), []byte("another"), well.at()); !errors.Is(err, errForeign) {
		t.Errorf("another cluster: found %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, told, err := asks(ctx, gone.pin, gone.at()); !errors.Is(err, context.DeadlineExceeded) || len(told) > 1 {
		t.Errorf("too late: found %q, %v", told, err)
	}
}

// TestTicketUsedAgain: who has used a token may use it again, as after an answer that got lost, and
// nobody else may.
func TestTicketUsedAgain(t *testing.T) {
	state := mem.NewNetwork().State("n1")
	defer state.Close()
	mine := &application{Secret: []byte("secret"), Node: Node{Name: "n2", Address: "192.0.2.2", Port: 7421}, Public: []byte("key")}
	value, err := json.Marshal(ticket{Version: 1, Sum: sumOf(mine.Secret), Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := state.Commit(t.Context(), nil, []cluster.Change{{Key: ticketKey("c", sumOf(mine.Secret)), Value: value}}); err != nil {
		t.Fatal(err)
	}
	for again := range 2 {
		found, err := find(t.Context(), state, "c", mine, time.Now())
		if err == nil {
			err = spend(t.Context(), state, found)
		}
		if err != nil || found.mine != (again == 1) {
			t.Errorf("use %d: found %+v, %v", again, found, err)
		}
	}
	other := *mine
	other.Public = []byte("another key")
	for _, c := range []struct {
		a  *application
		at time.Time
	}{{&other, time.Now()}, {mine, time.Now().Add(2 * time.Hour)}, {&application{Secret: []byte("no")}, time.Now()}} {
		if _, err := find(t.Context(), state, "c", c.a, c.at); !errors.Is(err, errNoTicket) {
			t.Errorf("found %v for %+v", err, c)
		}
	}
}
