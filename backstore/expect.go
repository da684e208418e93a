package backstore

import (
	"math/bits"

	"lunar/internal/evloop"
)

// expectations are what an event thread has learnt about how long a volume's calls
// take: reads, writes and others, each by size.
type expectations [3][4]evloop.Answers

// of returns that for c. Sizes up to 4, 16 and 64 KiB and larger ones are apart.
func (e *expectations) of(c *call) *evloop.Answers {
	kind := 2
	switch c.verb {
	case readCall:
		kind = 0
	case writeCall:
		kind = 1
	}
	pages := max(len(c.data)-1, 0) / pageSize
	return &e[kind][min((bits.Len(uint(pages))+1)/2, len(e[kind])-1)]
}
