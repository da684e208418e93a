package iser

// ring is a queue that grows and keeps its memory. Positions count on for ever,
// modulo 2^32.
type ring[T any] struct {
	cells      []T
	head, tail uint32
}

func (r *ring[T]) len() int { return int(r.tail - r.head) }

// at returns the cell of a position between head and tail.
func (r *ring[T]) at(i uint32) *T { return &r.cells[i&uint32(len(r.cells)-1)] }

func (r *ring[T]) first() *T { return r.at(r.head) }

// push returns the next free cell, which holds what it held before.
func (r *ring[T]) push() *T {
	if r.len() == len(r.cells) {
		r.grow()
	}
	cell := r.at(r.tail)
	r.tail++
	return cell
}

func (r *ring[T]) grow() {
	cells := make([]T, max(64, 2*len(r.cells)))
	for i := r.head; i != r.tail; i++ {
		cells[i&uint32(len(cells)-1)] = *r.at(i)
	}
	r.cells = cells
}

// last returns the newest cell; there is one.
func (r *ring[T]) last() *T { return r.at(r.tail - 1) }

// pop takes the first cell, which stays as it is until the next push.
func (r *ring[T]) pop() *T {
	cell := r.at(r.head)
	r.head++
	return cell
}

// unpush takes the last cell back.
func (r *ring[T]) unpush() *T {
	r.tail--
	return r.at(r.tail)
}
