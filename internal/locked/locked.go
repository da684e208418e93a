// Package locked keeps keys in memory of their own: locked, so that they are never
// swapped out, left out of core dumps, and overwritten when nobody uses them any more.
// Where memory cannot be locked, as in a container with a low RLIMIT_MEMLOCK, all but
// that holds.
package locked

import (
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is whole pages for one key. It is overwritten and given back some time after
// nothing refers to it any more, so whoever uses Bytes keeps it alive.
type Memory struct{ mem []byte }

// failure is why some memory is not locked, most recently.
var failure atomic.Pointer[error]

// Failure is why memory could not be locked the last time that this failed, an error of
// its own each time; nil: all is locked.
func Failure() error {
	if err := failure.Load(); err != nil {
		return *err
	}
	return nil
}

// New returns n bytes of zeroes.
func New(n int) *Memory {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		fail(fmt.Errorf("map %d bytes: %w", n, err))
		return &Memory{make([]byte, n)}
	}
	if err := unix.Mlock(mem); err != nil {
		fail(fmt.Errorf("lock %d bytes in memory (RLIMIT_MEMLOCK, LimitMEMLOCK of a service): %w", n, err))
	}
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP)   // kernels have it since 3.4,
	_ = unix.Madvise(mem, unix.MADV_WIPEONFORK) // since 4.14; nothing here forks
	m := &Memory{mem}
	runtime.AddCleanup(m, func(mem []byte) {
		clear(mem)
		_ = unix.Munmap(mem) // it can only fail for arguments that are wrong
	}, mem)
	return m
}

func fail(err error) { failure.Store(&err) }

// Bytes is the memory.
func (m *Memory) Bytes() []byte { return m.mem }

// Move moves what v, or the pointer in it, points to, and returns v for where it is
// now, and overwrites what was there: for expanded keys of the standard library. What
// has pointers itself, or is none, stays where it is; then the memory is nil.
func Move[T any](v T) (T, *Memory) {
	at, ok := contents(v)
	if !ok {
		return v, nil
	}
	m := New(len(at))
	copy(m.mem, at)
	clear(at)
	kind := reflect.TypeOf(v).Elem()
	return reflect.NewAt(kind, unsafe.Pointer(unsafe.SliceData(m.mem))).Interface().(T), m
}

// Wipe overwrites what the pointer in v points to, if that has no pointers itself. It
// must not be used any more.
func Wipe(v any) {
	if at, ok := contents(v); ok {
		clear(at)
	}
}

func contents(v any) ([]byte, bool) {
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() || !flat(p.Type().Elem()) {
		return nil, false
	}
	return unsafe.Slice((*byte)(p.UnsafePointer()), p.Type().Elem().Size()), true
}

// flat reports whether values of a type are numbers and nothing else.
func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return flat(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !flat(f.Type) {
				return false
			}
		}
		return t.Size() > 0
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128 && t.Kind() != reflect.Uintptr
}
