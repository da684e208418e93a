// Package token is the file of tokens by which programs ask a server over TCP. Each line
// has a role, a name for log and audit, and the SHA-256 of a token. The tokens themselves
// are random and stand nowhere, so that who reads the file cannot use it.
package token
