package server

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/control"
	"lunar/control/events"
)

// TestEvents: a reader gets what there was, and then what happens, of the kinds that it
// wants; a reader that takes nothing holds up nobody, and the end of the server ends all.
func TestEvents(t *testing.T) {
	socket, stream := filepath.Join(t.TempDir(), control.SocketName), events.New(time.Now())
	s := start(t, Config{Socket: socket, Source: fixed(sample()), Events: stream})
	api, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	stream.Publish(control.Event{Kind: "login", Text: "old"})
	stream.Publish(control.Event{Kind: "health", Text: "ill"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []control.Event
	if err := api.Events(ctx, nil, "", false, func(e control.Event) error { got = append(got, e); return nil }); err != nil || len(got) != 2 {
		t.Fatalf("found %v, %v", got, err)
	}
	none := func(control.Event) error { return errors.New("an event of a kind that there is not") }
	if err := api.Events(ctx, []string{"health", "heatlh"}, "", false, none); err == nil || !strings.Contains(err.Error(), `found "heatlh", expected one of access-refused, audit, `) {
		t.Errorf("found %v", err)
	}
	enough := errors.New("enough")
	told := make(chan control.Event)
	ended := make(chan error)
	go func() {
		ended <- api.Events(ctx, []string{"health"}, got[0].ID, true, func(e control.Event) error {
			told <- e
			if e.Text == "last" {
				return enough
			}
			return nil
		})
	}()
	if e := <-told; e.Text != "ill" {
		t.Errorf("found %+v", e)
	}
	for range 10 * events.Capacity { // while nobody takes them
		stream.Publish(control.Event{Kind: "health", Text: string(make([]byte, 1000))})
	}
	stream.Publish(control.Event{Kind: "login", Text: "another kind"})
	stream.Publish(control.Event{Kind: "health", Text: "last"})
	lost := false
	for e := range told {
		if lost = lost || e.Kind == control.Lost; e.Kind == "login" {
			t.Errorf("found %+v", e)
		}
		if e.Text == "last" {
			break
		}
	}
	if err := <-ended; !errors.Is(err, enough) || !lost {
		t.Errorf("found %v, expected the last one, and that some are gone (%v)", err, lost)
	}
	go func() { ended <- api.Events(ctx, nil, "", true, func(control.Event) error { return nil }) }()
	stop(s)
	<-ended
}
