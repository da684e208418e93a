package tcp

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// AutoCongestion is the Config.Congestion that is chosen for each connection.
const AutoCongestion = "auto"

// Where the kernel tells of its congestion controls (ip-sysctl.rst).
const (
	// availableCongestion lists those that are loaded.
	availableCongestion = "/proc/sys/net/ipv4/tcp_available_congestion_control"
	// allowedCongestion lists those that a process without CAP_NET_ADMIN may use.
	allowedCongestion = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
	// systemCongestion is where the kernel says what connections have without a choice.
	systemCongestion = "/proc/sys/net/ipv4/tcp_congestion_control"
)

// controls are the congestion controls of the kernel, by name.
type controls struct {
	system     string
	available  []string
	allowed    []string
	privileged bool // this process may use those that are not allowed, too
}

func readControls() (k controls, err error) {
	system, err := os.ReadFile(systemCongestion)
	available, _ := os.ReadFile(availableCongestion) // without it nothing is chosen but the system's
	allowed, _ := os.ReadFile(allowedCongestion)
	return controls{
		system: strings.TrimSpace(string(system)), available: strings.Fields(string(available)),
		allowed: strings.Fields(string(allowed)), privileged: mayAdministerNetwork(),
	}, err
}

// mayAdministerNetwork reports whether the thread has CAP_NET_ADMIN.
func mayAdministerNetwork() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_NET_ADMIN) != 0
}

// may reports whether this process may use a congestion control that is loaded.
func (k controls) may(name string) bool {
	return slices.Contains(k.available, name) && (k.privileged || slices.Contains(k.allowed, name))
}

// pacing are congestion controls that send by a timer. On a short way, where nothing is
// lost, the timer holds a storage stream up and costs CPU time, and finds nothing out.
var pacing = []string{"bbr", "bbr2", "bbr3"}

// near is the choice for a short way: the system's unless that paces. It is never dctcp,
// which needs switches that are made for it, unless that is the system's.
func (k controls) near() string {
	if slices.Contains(pacing, k.system) {
		for _, name := range []string{"cubic", "reno"} {
			if k.may(name) {
				return name
			}
		}
	}
	return k.system
}

// choose is the choice for a connection: on a long way the system's, which somebody has
// made for that.
func (k controls) choose(local, remote netip.Addr, rtt time.Duration) string {
	if isNear(local, remote, rtt) {
		return k.near()
	}
	return k.system
}

// nearRTT is the longest round trip of a short way: a storage network's takes less, also
// over a few switches, and one to another site more.
const nearRTT = time.Millisecond

// isNear reports whether a way is short. An rtt of 0 is unknown.
func isNear(local, remote netip.Addr, rtt time.Duration) bool {
	return remote.IsLoopback() || remote == local || rtt > 0 && rtt <= nearRTT
}

// shortestRTT is the least round trip that the kernel has seen of a connection; 0 if it
// does not tell. The handshake's counts, which no delayed acknowledgement makes longer.
func shortestRTT(fd int) time.Duration {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil || info.Min_rtt == ^uint32(0) {
		return 0
	}
	return time.Duration(info.Min_rtt) * time.Microsecond
}
