// Package freeport finds ports for servers that tests and measurements start.
package freeport

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// first and count are of ports that Linux, as it is installed, gives to no socket that
// asks for any: whoever listens there later does not find that an outgoing connection has
// taken the port meanwhile.
const (
	first = 16 << 10
	count = 16 << 10
)

// Find returns a TCP port at which nothing listens, on any address.
func Find() (port int, err error) {
	for range 100 {
		port = first + rand.IntN(count)
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, err
		}
		return port, l.Close()
	}
	return 0, unix.EADDRINUSE
}

// Loopback is a port of Find with the address 127.0.0.1.
func Loopback() (hostPort string, err error) {
	port, err := Find()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
