// Command lunar administers a Lunar iSCSI target server. It is a client of a running
// server's control API, and resolves volumes that a start has refused.
package main

import (
	"context"
	"os"

	"lunar/cmd/lunar/admin"
	"lunar/internal/cli"
)

func main() {
	os.Exit(admin.Run(context.Background(), os.Args[1:], cli.Console{Out: os.Stdout, Err: os.Stderr}))
}
