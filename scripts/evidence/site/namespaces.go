package site

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// mark is in the environment of the process that is in a network namespace of its own.
const mark = "LUNAR_SITE_NETWORK"

// Apart has this program go on in a network namespace of its own, in which everything runs but the
// servers, if it may. Each server has another one, so that it can be cut off.
func Apart() error {
	if os.Geteuid() != 0 {
		return nil
	}
	if os.Getenv(mark) != "" {
		return run("ip", "link", "set", "lo", "up")
	}
	program, err := exec.LookPath("unshare")
	if err != nil {
		return err
	}
	return syscall.Exec(program, append([]string{"unshare", "--net"}, os.Args...), append(os.Environ(), mark+"=1"))
}

// Separate reports whether servers have network namespaces of their own.
func Separate() bool { return os.Getenv(mark) != "" }

// host is the address of what is no server.
func host() string {
	if Separate() {
		return "10.77.0.1"
	}
	return "127.0.0.1"
}

func run(command ...string) error {
	if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, said)
	}
	return nil
}

// all runs commands until one fails.
func all(commands ...string) error {
	for _, c := range commands {
		if err := run(strings.Fields(c)...); err != nil {
			return err
		}
	}
	return nil
}

// bridge makes the network between the namespaces. It ends with this process's.
func bridge() error {
	return all("ip link add lunar type bridge", "ip addr add "+host()+"/24 dev lunar", "ip link set lunar up")
}

// separate makes the namespace of a server, and returns its address in it.
func (n *Node) separate(i int) (string, error) {
	n.space, n.outside = fmt.Sprintf("lunar-%d-%s", os.Getpid(), n.Name), fmt.Sprint("lunar", i)
	address := fmt.Sprint("10.77.0.", 11+i)
	return address, all(
		"ip netns add "+n.space,
		"ip link add "+n.outside+" type veth peer name eth0 netns "+n.space,
		"ip link set "+n.outside+" master lunar up",
		"ip -n "+n.space+" addr add "+address+"/24 dev eth0",
		"ip -n "+n.space+" link set eth0 up",
		"ip -n "+n.space+" link set lo up",
	)
}

// inside is the command by which something runs in the server's namespace.
func (n *Node) inside() []string {
	if n.space == "" {
		return nil
	}
	return []string{"ip", "netns", "exec", n.space}
}

// cut has nothing be sent from the server's namespace that a selector of ip rule matches.
func (n *Node) cut(selectors ...string) (mend func() error, err error) {
	const rule = " pref 100 ipproto tcp "
	for _, s := range selectors {
		if err := all("ip -n " + n.space + " rule add" + rule + s + " blackhole"); err != nil {
			return nil, err
		}
	}
	return func() error {
		for _, s := range selectors {
			if err := all("ip -n " + n.space + " rule del" + rule + s + " blackhole"); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// cutFrom is cut with selectors.
func cutFrom(selectors []string) func(*Node) (mend func() error, err error) {
	return func(n *Node) (func() error, error) { return n.cut(selectors...) }
}

// unplug has nothing come to the server's namespace, or out of it.
func (n *Node) unplug() (mend func() error, err error) {
	return func() error { return all("ip link set " + n.outside + " up") }, all("ip link set " + n.outside + " down")
}

// What servers reach, as selectors.
var (
	etcdPorts = []string{"dport 7421-7423", "sport 7421-7423"}
	hostPorts = []string{"sport 3260"}
)

// cephPorts are those of the monitor and of OSDs.
func (s *Site) cephPorts() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(s.Dir, "ceph", "ceph.conf"))
	if err != nil {
		return nil, err
	}
	monitor := regexp.MustCompile(`mon host = \[v2:[^:]+:(\d+)/0\]`).FindSubmatch(text)
	if monitor == nil {
		return nil, errors.New("found no monitor in ceph.conf")
	}
	return []string{"dport " + string(monitor[1]), "dport 6800-7300"}, nil
}
