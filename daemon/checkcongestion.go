package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"lunar/conf"
)

// Where the kernel tells of its congestion controls (ip-sysctl.rst): those that are
// loaded, and those of them that a process without CAP_NET_ADMIN may use. The others
// are modules with the name behind tcp_.
const (
	loadedCongestion  = "proc/sys/net/ipv4/tcp_available_congestion_control"
	allowedCongestion = "proc/sys/net/ipv4/tcp_allowed_congestion_control"
	kernelRelease     = "proc/sys/kernel/osrelease"
	kernelModules     = "lib/modules"
)

// checkCongestion asks whether the kernel has a congestion control. It only reads below
// root: to ask a socket would load the module. It returns a note where it cannot tell.
func checkCongestion(root, name string) (notes []string, err error) {
	if name == conf.SystemCongestion || name == conf.AutoCongestion {
		return nil, nil
	}
	note := func(format string, args ...any) ([]string, error) {
		return []string{fmt.Sprintf("server.congestion: "+format, args...)}, nil
	}
	loaded, err := words(root, loadedCongestion)
	if err != nil {
		return note("it cannot be told whether the kernel has %q: %v", name, err)
	}
	allowed, err := words(root, allowedCongestion)
	switch {
	case err == nil && slices.Contains(allowed, name):
		return nil, nil
	case slices.Contains(loaded, name):
		return note("the kernel has %q for processes with CAP_NET_ADMIN only, which the server needs then", name)
	}
	release, err := words(root, kernelRelease)
	if err != nil || len(release) != 1 {
		return note("it cannot be told whether the kernel has a module for %q: found no release of it", name)
	}
	modules := filepath.Join(root, kernelModules, release[0])
	there, err := hasModule(modules, "tcp_"+name)
	switch {
	case err != nil:
		return note("it cannot be told whether the kernel has a module for %q: %v", name, err)
	case there:
		return note("%q is a module that the kernel loads when a server with CAP_NET_ADMIN asks for it", name)
	}
	return nil, fmt.Errorf("server.congestion: found %q, expected one of the kernel's (%s); module tcp_%s is not in %s",
		name, strings.Join(loaded, ", "), name, modules)
}

// words are those of a file of the kernel's.
func words(root, path string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	return strings.Fields(string(text)), err
}

// hasModule reports whether depmod(8) has listed a module in dir, by its file or by an
// alias. Hyphens are underscores in their names.
func hasModule(dir, name string) (bool, error) {
	dep, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return false, err
	}
	aliases, _ := os.ReadFile(filepath.Join(dir, "modules.alias")) // there may be none
	pattern := strings.NewReplacer("_", "[-_]", "-", "[-_]").Replace(name)
	is := regexp.MustCompile(`(?m)^(\S*/)?` + pattern + `\.ko[^/\s]*:|^alias ` + pattern + ` `)
	return is.Match(dep) || is.Match(aliases), nil
}
