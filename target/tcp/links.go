package tcp

import (
	"log/slog"
	"sync"

	"lunar/target/bottleneck"
)

// links are the network devices by which connections are governed that send through them, and
// the kernel's part in it.
type links struct {
	*bottleneck.Links
	kernel   kernel
	log      *slog.Logger
	fellBack sync.Once
}

// fallBack tells once that the kernel does not govern, for which the server then does.
func (l *links) fallBack(why error) {
	l.fellBack.Do(func() { l.log.Warn("the kernel does not govern connections: the server does", "err", why) })
}
