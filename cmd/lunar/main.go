// Command lunar looks after a Lunar iSCSI target server: it asks a server that runs by
// its control API, and says what is to be done about volumes that a start has refused.
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
