// Package targettest holds what every transport and every store of package
// target has to pass, and a transport in memory to run it over: no socket, no
// digest, and a reader that can be made to stall.
//
// Dial joins an initiator to a server:
//
//	conn := targettest.Dial(server, tag, targettest.Wire{})
//	c := initiator.NewConn(conn)
//	err := c.Login(initiator.Options{Target: name})
package targettest
