package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"strings"

	"lunar/control"
	"lunar/internal/loglimit"
)

// auditNote is what the operation tells the log of itself.
type auditNote struct{ what, result string }

// audited notes each request that may change something: all but those that only read, and
// those that became jobs, which are noted when they end. The lines of who may not are
// bounded, as anybody may cause them.
func audited(next http.Handler, trail *Trail, journal *loglimit.Journal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		note := &auditNote{}
		answer := &witness{ResponseWriter: w}
		ended := false
		defer func() {
			if ended && answer.status == http.StatusAccepted {
				return
			}
			if j := jobOf(r.Context()); j != nil {
				note.what = strings.TrimSpace("as job " + j.ID + " " + note.what)
			}
			c := Change{What: strings.TrimSpace(r.Method + " " + clipped(r.URL.Path) + " " + note.what), By: callerOf(r.Context()), Result: note.result}
			switch {
			case !ended:
				c.Err = fmt.Errorf("the request was broken off by a fault of the server")
			case answer.status >= http.StatusBadRequest:
				c.Err = control.AsRefusal(answer.problem.Bytes())
			case answer.status >= http.StatusMultipleChoices:
				c.Err = fmt.Errorf("nothing is at this path: found one that is not clean, expected %q", path.Clean(r.URL.Path))
			}
			if answer.status == http.StatusUnauthorized || answer.status == http.StatusForbidden {
				c.Log(journal.Logger(c.By.holder(), false))
				return
			}
			trail.Note(c)
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
