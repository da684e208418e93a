package main

import (
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lunar/backstore/profile"
	"lunar/conf"
)

// profileDepth is how many reads measuring keeps under way: enough to find the
// most that a device can do, and what a thread has under way with the default
// window.
const profileDepth = 32

// measureDevices reads from every volume below the cache, one after the other,
// and returns what all devices can do together, in tokens/s. A device that
// several volumes are on counts once, with the most that one of them showed.
func measureDevices(cfg *conf.Config, log *slog.Logger) int64 {
	best, sum := map[string]int64{}, int64(0)
	log.Info("measuring volumes", "volumes", len(cfg.Volumes), "time", time.Duration(len(cfg.Volumes))*cfg.QoS.Profile)
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		result, err := measureVolume(v, cfg.QoS.Profile)
		if err != nil {
			log.Warn("volume could not be measured", "volume", v.Name, "reason", err)
			continue
		}
		device := deviceOf(v)
		best[device] = max(best[device], result.IOPS())
		log.Info("volume measured: random reads of 4 KiB", "volume", v.Name, "device", device, "IOPS", result.IOPS(), "depth", profileDepth, "time", result.Elapsed)
	}
	for _, iops := range best {
		sum += iops
	}
	log.Info("capacity measured", "devices", len(best), "IOPS", sum)
	return sum * cfg.QoS.Cost.Of(profile.BlockSize, false)
}

// measureVolume opens a volume's store as the server will, and closes it. Who
// opens it next says what there is to say of it.
func measureVolume(v *conf.Volume, duration time.Duration) (profile.Result, error) {
	quiet := slog.New(slog.DiscardHandler)
	store, err := openStore(v, quiet)
	if err != nil {
		return profile.Result{}, err
	}
	defer store.Close()
	return profile.Measure(store, profile.Config{Depth: profileDepth, Duration: duration, Logger: quiet})
}

// deviceOf names what the bytes of a volume are on: the device of its file
// system, itself, or memory.
func deviceOf(v *conf.Volume) string {
	info, err := os.Stat(v.Path)
	if v.Path == "" || err != nil {
		return "memory"
	}
	s := info.Sys().(*syscall.Stat_t)
	dev := s.Dev
	if v.Type == conf.BlockVolume {
		dev = s.Rdev
	}
	return fmt.Sprintf("%d:%d", unix.Major(dev), unix.Minor(dev))
}
