// Package evidence decides what a start believes of the file or device that it
// finds for a volume: whether it is the store that is remembered, and whether it
// holds what it held. It is pure: callers gather what was recorded and what is
// found. docs/internals/stores.md has the same tables for administrators.
package evidence
