package cache

// Resident appends to keys the blocks of LU lu from first on that lie in the n
// slots from the given one on, and returns the slot to go on with: the number of
// slots at the end.
func (p *Partition) Resident(lu uint32, first uint64, from, n uint32, keys []Key) (next uint32, found []Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	end := min(from+n, uint32(len(p.blocks)))
	for slot := from; slot < end; slot++ {
		if b := &p.blocks[slot]; b.state == stateResident && b.lu == lu && b.number >= first {
			keys = append(keys, b.key())
		}
	}
	return end, keys
}
