package scsi

import "lunar/backstore"

// sanitizeCryptoErase runs SANITIZE with the service action CRYPTOGRAPHIC ERASE: the
// store forgets its key. What the cache has of the data goes with it, and blocks that
// can be released are, so that they read as zeroes.
func sanitizeCryptoErase(c *Command) {
	c.sanitize(&sanitizing{crypto: true})
}

// cryptoEraseStep makes one operation after the other, all of which hold the whole
// medium exclusively: a write of before has ended by then, and one that comes later is
// refused.
func cryptoEraseStep(c *Command) {
	s, lu := c.carrier(), c.Nexus.LU
	for s.state != running {
		if s.state == done && s.op.Err != nil {
			c.endSanitize(s)
			return
		}
		s.state = idle
		s.op.Data, s.op.Off, s.op.Len = nil, 0, lu.byteOff(lu.state.Load().Blocks)
		c.work.index++
		switch c.work.index {
		case 1:
			c.eraseAll(s, backstore.Erase)
		case 2:
			if info := &lu.traits.Load().info; info.Discard && info.DiscardZeroes {
				c.eraseAll(s, backstore.Discard)
			}
		case 3:
			s.op.Len = 0
			s.launch(backstore.Flush)
		default:
			c.endSanitize(s)
			return
		}
	}
}

func (c *Command) eraseAll(s *segment, kind backstore.Kind) {
	s.lock.cover(exclusive, 0, s.op.Len)
	s.launch(kind)
}
