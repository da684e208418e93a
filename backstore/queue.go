package backstore

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// queue is the sysfs directory of a block device's request queue, or empty.
type queue string

// queueOf finds the queue of a device number; that of a partition is its
// disk's.
func queueOf(dev uint64) queue {
	base := fmt.Sprintf("/sys/dev/block/%d:%d/", unix.Major(dev), unix.Minor(dev))
	for _, dir := range []string{base + "queue/", base + "../queue/"} {
		if _, err := os.Stat(dir); err == nil {
			return queue(dir)
		}
	}
	return ""
}

// number returns an attribute, 0 if there is none.
func (q queue) number(attribute string) int64 {
	n, _ := strconv.ParseInt(q.text(attribute), 10, 64) // 0 on error
	return n
}

// text returns an attribute, empty if there is none.
func (q queue) text(attribute string) string {
	if q == "" {
		return ""
	}
	b, err := os.ReadFile(string(q) + attribute)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
