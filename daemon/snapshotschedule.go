package daemon

import (
	"strings"
	"time"

	"lunar/backstore/images"
	"lunar/conf"
)

// scheduled is what a schedule wants at a moment.
type scheduled struct {
	name   string    // of the snapshot that is due; empty: none is
	remove []string  // snapshots that are too many
	next   time.Time // when it wants the next one
}

// schedule decides what a schedule wants now of a volume that has images, the oldest first.
// Time is divided into periods from a fixed moment on, so that nothing moves when the server
// starts: a snapshot is due if the present period has none, and of periods that went by while
// nobody made any there is one. Images of the future, of a clock that was or is wrong, are
// left alone: they are neither counted nor deleted, so that a clock that begins again at zero
// deletes nothing.
func schedule(s *conf.SnapshotSchedule, now time.Time, all []images.Image) (out scheduled) {
	period := now.Truncate(s.Every)
	out.next = period.Add(s.Every)
	var own []images.Image
	for _, i := range all {
		if strings.HasPrefix(i.Name, scheduledPrefix) && !i.At.After(now) {
			own = append(own, i)
		}
	}
	keep := s.Keep
	if len(own) == 0 || own[len(own)-1].At.Before(period) {
		out.name = scheduledPrefix + now.UTC().Format(byMoment)
		keep-- // once it is there
	}
	for _, i := range own[:max(0, len(own)-keep)] {
		out.remove = append(out.remove, i.Name)
	}
	return out
}
