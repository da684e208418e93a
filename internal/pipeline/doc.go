// Package pipeline moves blocks through stages: loading, digests, ciphers, networks,
// stores. It is for bulk work, which has no place on an event thread (ACES, Ren's
// dissertation, chapter 3).
//
// Blocks have fixed memory and go from stage to stage by pointer. Each stage has a bounded
// queue and a number of threads. A slow stage fills its queue, then blocks run out and the
// first stage stops: nothing is dropped and nothing is copied.
//
// What decides is pure: Table says what may become of a block, Line which stage takes
// which block, Monitor how many threads a stage has, Order what may be stored next. Run
// puts goroutines around a Line. The simulator uses the same types.
package pipeline
