// Command guest runs in the lab's guest: it writes to a disk and to files, and does what the
// host tells it to.
package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/multipath/writers"
)

func main() {
	var o struct {
		Host        string   `required:"" help:"Where the host listens."`
		Disk        string   `required:"" help:"Device to write to."`
		DiskWriters int      `default:"8" help:"Commands under way on it."`
		Files       string   `required:"" help:"Directory to write files in."`
		FileWriters int      `default:"3" help:"Files under way."`
		Paths       []string `arg:"" optional:"" help:"Devices that are paths to the disk, which are read from."`
	}
	kong.Parse(&o)
	w, err := writers.New(o.Disk, o.DiskWriters, o.Files, o.FileWriters, o.Paths)
	if err == nil {
		err = w.Serve(o.Host)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		os.Exit(1)
	}
}
