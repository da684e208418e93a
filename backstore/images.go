package backstore

import (
	"fmt"

	"lunar/backstore/images"
)

// Images implements images.Source for a file.
func (v *volume) Images() (images.Images, error) {
	if v.device {
		return nil, fmt.Errorf("%w: %s is a block device; a volume of type file on xfs or btrfs can", images.ErrUnsupported, v.path)
	}
	return images.Of(v.path, v.fd)
}
