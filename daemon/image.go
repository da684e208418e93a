package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"lunar/backstore/rbd"
	"lunar/backstore/rbd/native"
	"lunar/conf"
	"lunar/control/server"
	"lunar/daemon/medium"
)

// openRBD opens Ceph's client library; tests have a cluster of their own.
var openRBD = native.Open

// imageResized hears that the image of a volume has got another size in its cluster.
func (d *daemon) imageResized(string) {
	select {
	case d.images <- struct{}{}:
	default: // who looks next sees this one, too
	}
}

// followedSize is the size that a volume's file, device or image has, if the volume is to be
// as large as that.
func (d *daemon) followedSize(v *conf.Volume) (bytes int64, ok bool) {
	image, ok := d.Health.Base(v.Name).(*rbd.Store)
	if !ok {
		return medium.FollowedSize(v)
	}
	if size, differs := image.SizeOutside(); differs {
		return size, true
	}
	return image.Info().Size, true
}

// followImages gives volumes the sizes that their images have got, until ctx ends.
func (a *applier) followImages(ctx context.Context, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.daemon.images:
		}
		for _, v := range a.daemon.config.Load().Volumes {
			image, ok := a.daemon.Health.Base(v.Name).(*rbd.Store)
			if !ok {
				continue
			}
			size, differs := image.SizeOutside()
			if !differs {
				continue
			}
			level := slog.LevelInfo
			if size < image.Info().Size {
				level = slog.LevelWarn
			}
			log.Log(ctx, level, "an image has got another size in its cluster", "volume", v.Name, "image", v.Image, "from", image.Info().Size, "to", size)
			if _, err := a.rescan(server.Asker{}, v.Name); err != nil {
				log.Error("a volume does not follow the size of its image; lunar rescan tries again", "volume", v.Name, "err", err)
			}
		}
	}
}

// checkImages says what would keep images from being opened on this machine. It asks no
// cluster.
func checkImages(cfg *conf.Config) (notes []string, err error) {
	uses := func(cluster string) bool {
		return slices.ContainsFunc(cfg.Volumes, func(v conf.Volume) bool { return v.Type == conf.RBDVolume && v.Ceph == cluster })
	}
	for i := range cfg.Ceph {
		k := &cfg.Ceph[i]
		if !uses(k.Name) {
			continue
		}
		version, failed := native.Version()
		for _, path := range []string{k.Config, k.KeyringFile} {
			if path != "" && failed == nil {
				failed = readable(path)
			}
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("ceph.%s: %w", k.Name, failed))
			continue
		}
		notes = append(notes, fmt.Sprintf("ceph.%s: librbd %s as client.%s; the cluster was not asked", k.Name, version, k.User))
	}
	return notes, err
}

func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}
