package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/user"
	"path"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/control"
)

// Change is what somebody changed, or was not allowed to.
type Change struct {
	What   string // operation and what it was given, without secrets
	By     string // who asked
	Err    error  // why nothing was changed; nil: it was
	Result string // what has come of it; may be empty
}

// Log writes the one line that each change gets, whatever way it came by.
func (c Change) Log(log *slog.Logger) {
	attrs := []any{"what", c.What, "by", c.By}
	if c.Err != nil {
		log.Warn("change", append(attrs, "outcome", "refused", "reason", oneLine(c.Err.Error()))...)
		return
	}
	if c.Result != "" {
		attrs = append(attrs, "result", oneLine(c.Result))
	}
	log.Info("change", append(attrs, "outcome", "done")...)
}

func oneLine(text string) string { return clipped(strings.ReplaceAll(text, "\n", "; ")) }

// clipped bounds what a request can put into the log.
func clipped(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

type auditKey int

const (
	peerKey auditKey = iota
	noteKey
	placeKey
)

// auditNote is what the operation tells the log of itself.
type auditNote struct{ what, result string }

// withPeer keeps who is at the other end of a connection (SO_PEERCRED, unix(7)): those
// are the credentials of when it connected.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	if p, ok := conn.(*placed); ok {
		conn = p.Conn
	}
	if cred := credentials(conn); cred != nil {
		return context.WithValue(ctx, peerKey, cred)
	}
	return ctx
}

// credentials are those of the other end of a unix socket; nil: it is none.
func credentials(conn net.Conn) (cred *unix.Ucred) {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return nil
	}
	if raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }) != nil || err != nil {
		return nil
	}
	return cred
}

// peerName says who asks.
func peerName(ctx context.Context) string {
	cred, ok := ctx.Value(peerKey).(*unix.Ucred)
	if !ok {
		return "unknown"
	}
	name := "?"
	if u, err := user.LookupId(strconv.FormatUint(uint64(cred.Uid), 10)); err == nil {
		name = u.Username
	}
	return fmt.Sprintf("pid %d, uid %d (%s)", cred.Pid, cred.Uid, name)
}

// audited logs each request that may change something: all but those that only read.
func audited(next http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		note := &auditNote{}
		answer := &witness{ResponseWriter: w}
		ended := false
		defer func() {
			c := Change{What: strings.TrimSpace(r.Method + " " + clipped(r.URL.Path) + " " + note.what), By: peerName(r.Context()), Result: note.result}
			switch {
			case !ended:
				c.Err = fmt.Errorf("the request was broken off by a fault of the server")
			case answer.status >= http.StatusBadRequest:
				c.Err = control.AsRefusal(answer.problem.Bytes())
			case answer.status >= http.StatusMultipleChoices:
				c.Err = fmt.Errorf("nothing is at this path: found one that is not clean, expected %q", path.Clean(r.URL.Path))
			}
			c.Log(log)
		}()
		next.ServeHTTP(answer, r.WithContext(context.WithValue(r.Context(), noteKey, note)))
		ended = true
	})
}

// witness sees how a request ends, and why it is refused.
type witness struct {
	http.ResponseWriter
	status  int
	problem bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (w *witness) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *witness) Write(p []byte) (int, error) {
	if w.status >= http.StatusBadRequest {
		w.problem.Write(p)
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *witness) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// noteInput notes the body of a request, but for fields that are tagged as not to be
// logged.
func noteInput(ctx context.Context, in any) {
	note, ok := ctx.Value(noteKey).(*auditNote)
	if !ok {
		return
	}
	if l, ok := in.(interface{ Loggable() any }); ok {
		if text, err := json.Marshal(l.Loggable()); err == nil {
			note.what = clipped(string(text))
		}
		return
	}
	if body := reflect.ValueOf(in).Elem().FieldByName("Body"); body.IsValid() {
		if text, err := json.Marshal(loggable(body)); err == nil {
			note.what = clipped(string(text))
		}
	}
}

// noteResult notes what a change that succeeded tells of itself.
func noteResult(ctx context.Context, out any) {
	if note, ok := ctx.Value(noteKey).(*auditNote); ok {
		if told, ok := out.(interface{ Outcome() string }); ok {
			note.result = told.Outcome()
		}
	}
}

// loggable is a struct without fields tagged audit:"-".
func loggable(v reflect.Value) any {
	if l, ok := v.Interface().(interface{ Loggable() any }); ok {
		return l.Loggable()
	}
	copied := reflect.New(v.Type()).Elem()
	copied.Set(v)
	for i := range copied.NumField() {
		if copied.Type().Field(i).Tag.Get("audit") == "-" {
			copied.Field(i).SetZero()
		}
	}
	return copied.Interface()
}
