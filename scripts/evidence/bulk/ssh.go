package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/internal/freeport"
)

// privilegeSeparation is a directory that sshd wants, empty, when root starts it.
const privilegeSeparation = "/run/sshd"

// shell is a server of ssh on loopback with keys and a configuration of its own: nothing of
// the machine's is used, or touched.
type shell struct {
	config string // of clients
	server *exec.Cmd
	made   bool // privilegeSeparation
}

// newShell starts it, with its files below dir.
func newShell(dir string) (_ *shell, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	s := &shell{config: filepath.Join(dir, "ssh_config")}
	address, err := freeport.Loopback()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"host", "client"} {
		if said, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ssh-keygen: %w: %s", err, said)
		}
	}
	host, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		return nil, err
	}
	client, err := os.ReadFile(filepath.Join(dir, "client.pub"))
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	of := func(text string) []byte {
		return []byte(strings.NewReplacer("DIR", dir, "PORT", port, "USER", me.Username).Replace(text))
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "known_hosts"), fmt.Appendf(nil, "[127.0.0.1]:%s %s", port, host), 0o600),
		os.WriteFile(filepath.Join(dir, "authorized_keys"), client, 0o600),
		os.WriteFile(filepath.Join(dir, "sshd_config"), of(sshdConfig), 0o600),
		os.WriteFile(s.config, of(sshConfig), 0o600),
	); err != nil {
		return nil, err
	}
	return s, s.start(filepath.Join(dir, "sshd_config"), address)
}

const sshdConfig = `ListenAddress 127.0.0.1
Port PORT
HostKey DIR/host
AuthorizedKeysFile DIR/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp /usr/lib/openssh/sftp-server
`

const sshConfig = `Host *
	Port PORT
	User USER
	IdentityFile DIR/client
	IdentitiesOnly yes
	IdentityAgent none
	UserKnownHostsFile DIR/known_hosts
	GlobalKnownHostsFile /dev/null
	StrictHostKeyChecking yes
	BatchMode yes
`

func (s *shell) start(config, address string) error {
	if os.Getuid() == 0 {
		switch err := os.Mkdir(privilegeSeparation, 0o755); {
		case err == nil:
			s.made = true
		case !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	s.server = exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	s.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := s.server.Start(); err != nil {
		return err
	}
	for range 500 {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(fmt.Errorf("sshd does not listen at %s", address), s.close())
}

func (s *shell) close() error {
	err := s.server.Process.Kill()
	_ = s.server.Wait() // it was killed
	if s.made {
		err = errors.Join(err, os.Remove(privilegeSeparation))
	}
	return err
}

// cipher is the one of ssh that is like that of moves: AES-256-GCM.
const cipher = "aes256-gcm@openssh.com"

// scp copies a file to another place, through the server.
func (s *shell) scp(from, to string, options ...string) error {
	return run("scp", append(append([]string{"-q", "-F", s.config}, options...), from, "127.0.0.1:"+to)...)
}

// rsync does the same by rsync.
func (s *shell) rsync(from, to string, options ...string) error {
	return run("rsync", append(append([]string{"-e", "ssh -F " + s.config + " -c " + cipher}, options...), from, "127.0.0.1:"+to)...)
}
