package volumes

import (
	"log/slog"
	"sync"
	"time"

	"lunar/internal/arena"
	"lunar/internal/bytesize"
)

// progressInterval is how often a start that takes long says how far it is.
const progressInterval = time.Second

// cacheProgress logs how much of the cache's memory has been touched.
func cacheProgress(log *slog.Logger) arena.Progress {
	var mu sync.Mutex
	last := time.Now()
	return func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= progressInterval && done < total {
			last = now
			log.Info("taking the cache's memory", "percent", done*100/total, "of", bytesize.Text(total))
		}
	}
}
