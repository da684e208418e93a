package initiator

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// URL names a logical unit: iscsi://host[:port]/target-name/lun, the form that
// libiscsi and qemu use, without credentials.
type URL struct {
	Address string // host:port
	Target  string
	LUN     uint64
}

// ParseURL decodes a URL. The port defaults to 3260, the LUN to 0.
func ParseURL(text string) (URL, error) {
	rest, ok := strings.CutPrefix(text, "iscsi://")
	if !ok {
		return URL{}, fmt.Errorf("target %q does not start with iscsi://", text)
	}
	host, path, _ := strings.Cut(rest, "/")
	name, number, _ := strings.Cut(path, "/")
	u := URL{Address: withPort(host), Target: name}
	if host == "" || name == "" {
		return URL{}, fmt.Errorf("target %q is not iscsi://host[:port]/target-name/lun", text)
	}
	if number == "" {
		return u, nil
	}
	lun, err := strconv.ParseUint(number, 10, 14)
	if err != nil {
		return URL{}, fmt.Errorf("LUN of target %q: %w", text, err)
	}
	u.LUN = lun
	return u, nil
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "3260")
}
