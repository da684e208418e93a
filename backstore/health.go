package backstore

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Trouble is what makes the data of a store unavailable, or not to be trusted.
type Trouble struct {
	Failed bool   // else the store goes on, with less than it should have
	What   string // in words
}

// Patient is a Store that can tell what is wrong with it.
type Patient interface {
	// Troubles returns what the store has found out by itself. It does not block.
	Troubles() []Trouble
	// Examine looks at the file or device, without reading data, and returns what is
	// wrong there. It may block as long as the file system does, and not at all after
	// Close.
	Examine() []Trouble
}

// Troubles implements Patient.
func (v *volume) Troubles() (out []Trouble) {
	if d := v.damage.Load(); d != nil {
		out = append(out, Trouble{Failed: true, What: d.err.Error()})
	}
	if v.intents != nil {
		if err := v.intents.Broken(); err != nil {
			out = append(out, Trouble{What: fmt.Sprintf("atomic writes fail: %v", err)})
		}
	}
	return out
}

// Examine implements Patient.
func (v *volume) Examine() []Trouble {
	v.open.RLock() // the number of a closed descriptor may be another file's
	defer v.open.RUnlock()
	if v.closed {
		return nil
	}
	size, links, err := v.measure()
	want := v.info.Load().Size
	switch {
	case err != nil:
		return []Trouble{{Failed: true, What: fmt.Sprintf("%s does not answer: %v", v.path, err)}}
	case size == 0 && v.device:
		return []Trouble{{Failed: true, What: v.path + " is gone"}}
	case size < want:
		return []Trouble{{Failed: true, What: fmt.Sprintf("%s has %d bytes, expected %d: somebody cut it", v.path, size, want)}}
	case links == 0:
		return []Trouble{{What: v.path + " was deleted: what is written is lost when it is closed"}}
	}
	return nil
}

// measure asks for the size and how many names the file has.
func (v *volume) measure() (size int64, links uint64, err error) {
	if v.device {
		g, err := readGeometry(v.fd)
		return g.size, 1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(v.fd, &st)
	return st.Size, uint64(st.Nlink), err
}
