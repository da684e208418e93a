package member

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Runs reports whether the directory's member has a keeper.
func (d Dir) Runs() bool {
	c, err := net.Dial("unix", d.Socket())
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// programName is that of the program that has Keeper and etcd.
const programName = "lunar-etcd"

// Program returns where lunar-etcd is: beside this program, or where the system has
// programs.
func Program() (string, error) {
	if own, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(own), programName)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	return exec.LookPath(programName)
}

// startPatience is how long a keeper may take until it can be reached: it reads some
// files.
const (
	startPatience = 10 * time.Second
	otherPatience = 2 * time.Second
)

// Start starts a keeper that outlives this process, unless there is one, and returns when
// it can be reached. messages gets its log, and that of etcd.
func (d Dir) Start(program string, messages *os.File) error {
	if d.Runs() {
		return nil
	}
	cmd := exec.Command(program, "run", "--dir", string(d))
	cmd.Stdout, cmd.Stderr = messages, messages
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // signals of a terminal are not for it
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	failed := fmt.Errorf("%s does not answer at %s", program, d.Socket())
	for until := time.Now().Add(startPatience); time.Now().Before(until); {
		select {
		case err := <-ended:
			failed = fmt.Errorf("%s has ended: %w", program, err)
			until = time.Now().Add(otherPatience) // another one may have come first, as a service
		case <-time.After(10 * time.Millisecond):
		}
		if d.Runs() {
			return nil
		}
	}
	return failed
}
