package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/conf"
	"lunar/internal/durable"
)

// Generation is a state that the configuration file had, with its secrets.
type Generation struct {
	Number   int
	At       time.Time
	By, What string // who brought it about, and by what
	Text     []byte
}

// Generations are the last states of the configuration file that a state directory keeps.
type Generations struct{ Dir string }

const (
	generationKind = "generation"
	generationsDir = "generations"
	// keptGenerations are so many that a bad day's changes can be undone.
	keptGenerations = 20
)

func (g Generations) path(number int) string {
	return filepath.Join(g.Dir, generationsDir, fmt.Sprintf("%08d.json", number))
}

// Numbers are those that there are, ascending.
func (g Generations) Numbers() ([]int, error) {
	entries, err := os.ReadDir(filepath.Join(g.Dir, generationsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []int
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if n, err := strconv.Atoi(name); ok && err == nil && len(name) == 8 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

// Load reads one; an error wraps fs.ErrNotExist if it is not kept.
func (g Generations) Load(number int) (*Generation, error) {
	out := &Generation{}
	if _, err := durable.LoadJSON(g.path(number), generationKind, out); err != nil {
		return nil, fmt.Errorf("generation %d: %w", number, err)
	}
	return out, nil
}

// Last is the newest one; nil: there is none.
func (g Generations) Last() (*Generation, error) {
	all, err := g.Numbers()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return g.Load(all[len(all)-1])
}

// Keep makes a new one stable, and drops the oldest. It returns the number.
func (g Generations) Keep(one Generation) (int, error) {
	all, err := g.Numbers()
	if err != nil {
		return 0, err
	}
	if one.Number = 1; len(all) > 0 {
		one.Number = all[len(all)-1] + 1
	}
	if err := durable.MakeDir(filepath.Join(g.Dir, generationsDir)); err != nil {
		return 0, err
	}
	if err := durable.SaveJSON(g.path(one.Number), generationKind, &one); err != nil {
		return 0, err
	}
	for i := 0; i < len(all)+1-keptGenerations; i++ {
		err = errors.Join(err, os.Remove(g.path(all[i]))) // which a loss of power may bring back
	}
	return one.Number, err
}

// Drop removes the newest one again, which did not come about.
func (g Generations) Drop(number int) error { return durable.Remove(g.path(number)) }

// Pending is a change of the configuration file that is under way, and what it may do.
type Pending struct {
	Text    []byte
	Allowed conf.Allowed
}

// PendingFile is where it is noted.
func PendingFile(dir string) string { return filepath.Join(dir, "pending.json") }

const pendingKind = "pending"

// NotePending notes a change before it is written to the file.
func NotePending(dir string, p Pending) error {
	return durable.SaveJSON(PendingFile(dir), pendingKind, &p)
}

// ReadPending is what was noted and not removed; nil: nothing.
func ReadPending(dir string) (*Pending, error) {
	out := &Pending{}
	_, err := durable.LoadJSON(PendingFile(dir), pendingKind, out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", PendingFile(dir), err)
	}
	return out, nil
}

// NonePending removes the note.
func NonePending(dir string) error { return durable.Remove(PendingFile(dir)) }
