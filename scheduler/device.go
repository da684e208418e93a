package scheduler

import "lunar/scheduler/haechi"

// Device is a backing device: what some volumes share, and others do not. All
// that stands for what it can do is counted by device: capacity, global tokens,
// reservation tokens, and the commands that are under way. Limits are not.
type Device struct {
	Name string
	Pool haechi.Pool // its global tokens
}
