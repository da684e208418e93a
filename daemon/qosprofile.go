package daemon

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"lunar/backstore"
	"lunar/backstore/profile"
	"lunar/conf"
	"lunar/daemon/medium"
)

// profileDepth is how many reads measuring keeps under way: enough to find the
// most that a device can do, and what a thread has under way with the default
// window.
const profileDepth = 32

// measureDevices reads from volumes below the cache, one after the other,
// and returns what each device can do, in tokens/s: the most that one of the
// volumes on it showed.
func measureDevices(cfg *conf.Config, volumes []conf.Volume, log *slog.Logger) map[string]int64 {
	best := map[string]int64{}
	log.Info("measuring volumes", "volumes", len(volumes), "time", time.Duration(len(volumes))*cfg.QoS.Profile)
	for i := range volumes {
		v := &volumes[i]
		if v.Type == conf.RBDVolume {
			log.Warn("volume is not measured: an image is opened once", "volume", v.Name)
			continue
		}
		result, err := measureVolume(v, cfg.QoS.Profile)
		if err != nil {
			log.Warn("volume could not be measured", "volume", v.Name, "reason", err)
			continue
		}
		device := medium.DeviceOf(v)
		best[device] = max(best[device], result.IOPS()*cfg.QoS.Cost.Of(profile.BlockSize, false))
		log.Info("volume measured: random reads of 4 KiB", "volume", v.Name, "device", device, "IOPS", result.IOPS(), "depth", profileDepth, "time", result.Elapsed)
	}
	for _, device := range slices.Sorted(maps.Keys(best)) {
		log.Info("capacity measured", "device", device, "tokens", best[device])
	}
	return best
}

// measureVolume opens a volume's store as the server will, and closes it. Who
// opens it next says what there is to say of it.
func measureVolume(v *conf.Volume, duration time.Duration) (profile.Result, error) {
	quiet := slog.New(slog.DiscardHandler)
	store, err := medium.Open(v, backstore.Intents{}, quiet, nil)
	if err != nil {
		return profile.Result{}, err
	}
	defer store.Close()
	return profile.Measure(store, profile.Config{Depth: profileDepth, Duration: duration, Logger: quiet})
}
