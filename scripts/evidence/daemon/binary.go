package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Version is what a server says of itself.
func Version(binary string) (string, error) {
	said, err := exec.Command(binary, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", binary, err)
	}
	return strings.TrimSpace(string(said)), nil
}

// Built builds the server of this tree for run, which returns an exit code as tests do.
func Built(run func(binary string) int) int {
	dir, err := os.MkdirTemp("", "evidence-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "tgtd")
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "lunar").Output() // of the server's module, which says what it is built of
	if err != nil {
		fmt.Fprintln(os.Stderr, "go list:", err)
		return 1
	}
	if said, err := exec.Command("go", "-C", strings.TrimSpace(string(root)), "build", "-o", filepath.Dir(binary)+"/", "./cmd/tgtd", "./cmd/lunar").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, said)
		return 1
	}
	return run(binary)
}
