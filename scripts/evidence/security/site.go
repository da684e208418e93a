package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"lunar/internal/freeport"
	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
)

//go:embed security.yaml
var siteConfig string

// crowdOfTargets is how many targets there are besides, which discovery has to tell of.
const crowdOfTargets = 200

// site is a server under siege.
type site struct {
	*daemon.Server
	scene scene
	used  time.Duration // CPU time, when it has ended
}

// at is a port of the server's address.
func at(port int) string { return net.JoinHostPort(canaryAddress, strconv.Itoa(port)) }

// errRefused is a configuration that check refuses.
var errRefused = errors.New("check refuses the configuration")

// newSite starts a server in dir; change, if there is one, spoils its configuration.
func newSite(binary, dir string, change func(string) string) (*site, error) {
	config := siteConfig
	for i := range crowdOfTargets {
		config += fmt.Sprintf("  %smany-%03d: {portal-groups: [public], auth-group: none, luns: [{lun: 0, volume: other}]}\n", prefix, i)
	}
	if change != nil {
		config = change(config)
	}
	var ports [4]int
	for i, name := range []string{"PORTAL", "BACK", "METRICS", "CONTROL"} {
		var err error
		if ports[i], err = freeport.Find(); err != nil {
			return nil, err
		}
		config = strings.ReplaceAll(config, ":"+name, fmt.Sprint(":", ports[i]))
	}
	known, err := controlTokens(binary, dir)
	if err != nil {
		return nil, err
	}
	control, whole := "", config
	if known != nil {
		control, whole = at(ports[3]), withControl(config, ports[3])
	}
	s, err := daemon.New(binary, dir, named(whole, true))
	if err != nil {
		return nil, err
	}
	if code, said := s.Command("check", s.Config); code != 0 { // an older binary, or a bad configuration
		control = ""
		if err := os.WriteFile(s.Config, []byte(named(config, false)), 0o600); err != nil {
			return nil, err
		}
		if code, _ := s.Command("check", s.Config); code != 0 {
			return nil, fmt.Errorf("%w: %s", errRefused, said)
		}
	}
	server, _ := canary.CPUs()
	s.Prefix = canary.Pinned(server)
	if _, err := s.Start(); err != nil {
		return nil, err
	}
	return &site{Server: s, scene: scene{
		Portal: at(ports[0]), Back: at(ports[1]), Metrics: at(ports[2]),
		Control: control, Tokens: known, Socket: s.Socket(), Binary: binary, Config: s.Config, Scratch: dir,
	}}, nil
}

// withRealTime puts the event threads before all ordinary ones.
func withRealTime(config string) string {
	return strings.Replace(config, "server:\n", "server:\n  real-time: true\n", 1)
}

var namedUser = regexp.MustCompile(`NAMED\((\w+)\)`)

// named binds users to initiator names, or leaves them free.
func named(config string, bound bool) string {
	as := ""
	if bound {
		as = `, initiators: ["iqn.2026-11.example.host:$1"]`
	}
	return namedUser.ReplaceAllString(config, as)
}

// alarms are what a server must not say.
var alarms = regexp.MustCompile(`(?m)^(panic: |fatal error: |goroutine \d+ \[|unexpected fault|time=\S+ level=ERROR|.*(sessions have not ended|a panic)).*$`)

// dead reports whether the process has ended.
func (s *site) dead() bool {
	select {
	case _, ok := <-s.Portal:
		return !ok
	default:
		return false
	}
}

// stop ends the server and returns what was wrong with it.
func (s *site) stop() (wrong []string) {
	defer s.Process.Release()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		wrong = append(wrong, "the server had ended: "+err.Error())
	}
	ended := make(chan *os.ProcessState, 1)
	go func() {
		state, _ := s.Process.Wait()
		ended <- state
	}()
	select {
	case state := <-ended:
		if state == nil || state.ExitCode() != 0 {
			wrong = append(wrong, fmt.Sprintf("the server ended with %v", state))
		}
		if state != nil {
			s.used = state.UserTime() + state.SystemTime()
		}
	case <-time.After(time.Minute):
		s.Process.Kill()
		wrong = append(wrong, "the server did not end within a minute")
	}
	for range s.Portal { // until it has said all
	}
	if len(wrong) > 0 {
		said := strings.TrimSpace(s.Output.String())
		wrong = append(wrong, "it said last: "+said[strings.LastIndex(said, "\n")+1:])
	}
	for _, line := range alarms.FindAllString(s.Output.String(), 5) {
		wrong = append(wrong, "the server said: "+line)
	}
	return wrong
}

// memory is the process's resident memory, in bytes.
func (s *site) memory() float64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.Process.Pid), "statm"))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize())
}

// holding are goroutines, descriptors and sessions of the server.
type holding struct {
	Goroutines, Descriptors, Sessions, Heap float64
}

// holding asks the metrics.
func (s *site) holding() (h holding, err error) {
	answer, err := http.Get("http://" + s.scene.Metrics + "/metrics")
	if err != nil {
		return h, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	for name, to := range map[string]*float64{
		"go_goroutines": &h.Goroutines, "process_open_fds": &h.Descriptors, "lunar_sessions": &h.Sessions, "go_memstats_heap_inuse_bytes": &h.Heap,
	} {
		if m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(text); m != nil {
			*to, _ = strconv.ParseFloat(string(m[1]), 64)
		}
	}
	return h, err
}
