package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

//go:embed echo/echo.c
var echoSource []byte

var errMute = errors.New("the echo names no port")

// startEcho builds the bare echo with the system's compiler, and serves data of so
// many bytes.
func startEcho(o *options, dir string, bytes int64) (*server, *tool, error) {
	source, program := filepath.Join(dir, "echo.c"), filepath.Join(dir, "echo")
	if err := os.WriteFile(source, echoSource, 0o600); err != nil {
		return nil, nil, err
	}
	if out, err := exec.Command("cc", "-O2", "-o", program, source).CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("cc: %w: %s", err, out)
	}
	s, err := spawn(echoName, o, dir, program, "serve", strconv.FormatInt(bytes>>20, 10))
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
