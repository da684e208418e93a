package main

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed echo
var echoSources embed.FS

var errMute = errors.New("the echo names no port")

// buildEcho builds the bare echo in dir with the system's compiler.
func buildEcho(dir string) (program string, err error) {
	if err := os.CopyFS(dir, echoSources); err != nil {
		return "", err
	}
	source, program := filepath.Join(dir, "echo"), filepath.Join(dir, "echo", "echo")
	if out, err := exec.Command("cc", "-O2", "-o", program, filepath.Join(source, "echo.c")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w: %s", err, out)
	}
	return program, nil
}

// startEcho serves data of so many bytes, by the program's command.
func startEcho(o *options, name, program, command string, bytes int64) (*server, *tool, error) {
	s, err := spawn(name, o, filepath.Dir(program), program, command, strconv.FormatInt(bytes>>20, 10))
	if err != nil {
		return nil, nil, err
	}
	for range 200 { // it touches its memory first
		time.Sleep(50 * time.Millisecond)
		if port, _ := os.ReadFile(s.log.Name()); strings.HasSuffix(string(port), "\n") {
			drive := echoDrive(program, strings.TrimSpace(string(port)))
			return s, &drive, nil
		}
	}
	return s, nil, errMute
}

// echoDrive is the echo's own client. It stands in for tgtload that sleeps.
func echoDrive(program, port string) tool {
	return tool{name: tgtload.name, arguments: func(c client, s *server, w workload, runtime time.Duration) []string {
		reads := map[string]string{"randread": "100", "read": "100", "randwrite": "0", "write": "0", "randrw": mixedReads}[w.rw]
		return []string{program, "drive", port, strconv.Itoa(s.pid()), strconv.Itoa(w.connections), strconv.Itoa(w.depth), strconv.Itoa(w.kib << 10),
			reads, strconv.FormatInt(c.plan.warmup.Milliseconds(), 10), strconv.FormatInt(runtime.Milliseconds(), 10)}
	}, result: tgtload.result}
}
