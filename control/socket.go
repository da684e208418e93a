package control

import (
	"net"
	"path/filepath"
)

// SocketIn is where the server of a state directory is asked, unless a flag names
// another place.
func SocketIn(dir, flag string) string {
	if flag != "" {
		return flag
	}
	return filepath.Join(dir, SocketName)
}

// Runs asks by connecting to the control socket.
func Runs(socket string) bool {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// SocketName is the name of the control socket in a state directory.
const SocketName = "control.sock"
