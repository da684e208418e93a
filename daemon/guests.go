package daemon

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"lunar/internal/durable"
	"lunar/internal/places"
)

// guestsKind is the kind of the sealed file in the state directory that has who had
// sessions last, and its name. Places are kept for them after a restart. Its loss
// costs no more than that, so that it has no mark.
const guestsKind = "guests"

// guestsInterval is how often the file is written if something has changed.
const guestsInterval = 10 * time.Second

type savedGuest struct {
	places.Guest
	Sessions int `json:"sessions"`
}

// loadGuests returns who had sessions; nobody if that cannot be told.
func loadGuests(dir string, log *slog.Logger) map[places.Guest]int {
	var saved []savedGuest
	_, err := durable.LoadJSON(filepath.Join(dir, guestsKind), guestsKind, &saved)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("no places are reserved for initiators that had sessions before the start", "file", filepath.Join(dir, guestsKind), "err", err)
		return nil
	}
	guests := make(map[places.Guest]int, len(saved))
	for _, g := range saved {
		guests[g.Guest] += g.Sessions
	}
	return guests
}

func saveGuests(dir string, guests map[places.Guest]int) error {
	saved := make([]savedGuest, 0, len(guests))
	for g, n := range guests {
		saved = append(saved, savedGuest{g, n})
	}
	slices.SortFunc(saved, func(a, b savedGuest) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Host.Compare(b.Host), cmp.Compare(a.Proven, b.Proven))
	})
	return durable.SaveJSON(filepath.Join(dir, guestsKind), guestsKind, saved)
}

// keepGuests saves who has sessions, again and again, and once more when ctx ends:
// before the server ends them.
func keepGuests(ctx context.Context, dir string, d *daemon, log *slog.Logger) {
	tick := time.NewTicker(guestsInterval)
	defer tick.Stop()
	last := map[places.Guest]int{}
	var failed error
	for over := false; !over; {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		guests := d.Guests()
		if maps.Equal(guests, last) {
			continue
		}
		err := saveGuests(dir, guests)
		if err == nil {
			last = guests
		} else if failed == nil {
			log.Warn("the list of initiators with sessions cannot be saved: no places are reserved for them after a restart", "err", err)
		}
		failed = err
	}
}
