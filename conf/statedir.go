package conf

import (
	"fmt"
	"os"
	"path/filepath"
)

// StateDir returns the absolute path of the state directory that a flag
// names, or of the default one.
func StateDir(flag string) (dir string, err error) {
	if dir = flag; dir == "" {
		dir, err = DefaultStateDir()
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return dir, nil
}

// DefaultStateDir is that of whoever runs the process. It follows the XDG base directory specification for everyone
// but root.
func DefaultStateDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/lunar", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "lunar"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w (--state-dir names one)", err)
	}
	return filepath.Join(home, ".local/state/lunar"), nil
}
