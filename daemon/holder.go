package daemon

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"lunar/daemon/state"
)

// holders names the processes that listen on the ports of portals, as far as
// this user may see them: " (in use by tgtd, pid 1234)".
func holders(portals []netip.AddrPort) string {
	ports := map[uint16]bool{}
	for _, p := range portals {
		ports[p.Port()] = true
	}
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeningInodes(table, ports, inodes)
	}
	if owners := ownersOf(inodes); len(owners) > 0 {
		return " (in use by " + strings.Join(owners, " and ") + ")"
	}
	return ""
}

// listeningInodes adds the socket inodes of a /proc/net table that listen on
// one of ports. Columns: 1 local address in hexadecimal, 3 state, 9 inode.
func listeningInodes(table string, ports map[uint16]bool, inodes map[string]bool) {
	const listening = "0A"
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		columns := strings.Fields(lines.Text())
		if len(columns) < 10 || columns[3] != listening {
			continue
		}
		_, hex, _ := strings.Cut(columns[1], ":")
		port, err := strconv.ParseUint(hex, 16, 16)
		if err == nil && ports[uint16(port)] {
			inodes[columns[9]] = true
		}
	}
}

// ownersOf lists the processes that have one of the sockets open, this one
// left out.
func ownersOf(inodes map[string]bool) []string {
	var owners []string
	seen := map[string]bool{strconv.Itoa(os.Getpid()): true}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range descriptors {
		pid := strings.Split(fd, "/")[2]
		link, err := os.Readlink(fd)
		if err != nil || seen[pid] {
			continue
		}
		inode := strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")
		if inodes[inode] {
			seen[pid] = true
			owners = append(owners, fmt.Sprintf("%s, pid %s", state.CommandOf(pid), pid))
		}
	}
	return owners
}
