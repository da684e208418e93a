package daemon

import (
	"fmt"
	"strings"

	"lunar/backstore"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/internal/bytesize"
)

// awaitsDirty tells who asked how much of a volume's dirty data is written, until ended
// is called; without any, what else is waited for.
func (c *change) awaitsDirty(volume string, of backstore.WriteBack, otherwise string) (ended func()) {
	key := conf.Key("volumes", volume)
	return c.by.Awaits(progressOf(key, key+": "+otherwise, of.Dirty))
}

// progressOf is how far dirty data are written of which there are as many as dirty says.
// What others write meanwhile does not take it back.
func progressOf(key, otherwise string, dirty func() int64) func() control.Progress {
	most := dirty()
	least := most
	return func() control.Progress {
		left := dirty()
		if least = min(least, left); least < most {
			left = least
		}
		p := dirtyProgress(key, most, left)
		if p.What == "" {
			p.What = otherwise
		}
		return p
	}
}

// awaits tells who asked what is waited for that has no measure, until ended is called.
func awaits(by server.Asker, what string) (ended func()) {
	return by.Awaits(func() control.Progress { return control.Progress{What: what} })
}

// dirtyProgress is how far the dirty data are written of which there were most at the
// beginning, in bytes. Without any there is nothing to tell.
func dirtyProgress(key string, most, left int64) (p control.Progress) {
	switch {
	case left > most: // writes go on
		p.What = fmt.Sprintf("%s: %s of dirty data are to be written", key, bytesize.Text(left))
	case most > 0:
		percent := int((most - left) * 100 / most)
		p.What = fmt.Sprintf("%s: %s of %s of dirty data written", key, bytesize.Text(most-left), bytesize.Text(most))
		p.Percent = &percent
	}
	return p
}

// awaitsClosing tells who asked which volumes are being closed, until ended is called.
func (c *change) awaitsClosing() (ended func()) {
	return c.by.Awaits(func() (p control.Progress) {
		if names := c.stillLeaving(); len(names) > 0 {
			p.What = "being closed, once their sessions have ended and their data are written: " + strings.Join(names, ", ")
		}
		return p
	})
}
