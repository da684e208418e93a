package control

import (
	"errors"
	"io/fs"
	"net"
	"os"
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

// PackagedSocket is where the packages have their server serve the control API, so that
// users who may not look into its state directory can ask it.
const PackagedSocket = "/run/lunar/control.sock"

// Find returns where a server is asked: at flag, if there is one; else in its state
// directory; or, if no flag has named that and there is no socket, at PackagedSocket.
func Find(dir string, byDefault bool, flag string) string {
	return find(dir, byDefault, flag, PackagedSocket)
}

func find(dir string, byDefault bool, flag, packaged string) string {
	socket := SocketIn(dir, flag)
	if flag != "" || !byDefault || exists(socket) || !exists(packaged) {
		return socket
	}
	return packaged
}

// exists also reports what may not be looked at: asking it tells why.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
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
