package server

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const monitoring = "../../docs/monitoring"

var (
	metricName = regexp.MustCompile(`\blunar_[a-z_]+[a-z]\b`)
	seriesLine = regexp.MustCompile(`(?m)^(lunar_[a-z_]+)[{ ]`)
)

// scraped are the names of all series of a scrape of a server with something of everything.
func scraped(t *testing.T) (names map[string]bool, page string) {
	t.Helper()
	_, c := serve(t, sample())
	code, _, page := request(t, c, "GET", "http://control/metrics")
	if code != http.StatusOK {
		t.Fatalf("found %d\n%s", code, page)
	}
	names = map[string]bool{}
	for _, m := range seriesLine.FindAllStringSubmatch(page, -1) {
		names[m[1]] = true
	}
	return names, page
}

// expressions are the values of a key anywhere in a JSON document.
func expressions(v any, key string) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if text, ok := inner.(string); ok && k == key {
				out = append(out, text)
			}
			out = append(out, expressions(inner, key)...)
		}
	case []any:
		for _, inner := range v {
			out = append(out, expressions(inner, key)...)
		}
	}
	return out
}

// TestMonitoringNames: every metric that the dashboard and the alerts name is in a scrape.
func TestMonitoringNames(t *testing.T) {
	names, _ := scraped(t)
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatalf("dashboard.json: %v", err)
	}
	rules, err := os.ReadFile(filepath.Join(monitoring, "lunar.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{
		"dashboard.json":  metricName.FindAllString(strings.Join(append(expressions(dashboard, "expr"), expressions(dashboard, "query")...), "\n"), -1),
		"lunar.rules.yml": metricName.FindAllString(string(rules), -1),
	}
	for file, used := range found {
		if len(used) < 10 {
			t.Errorf("%s: found %d names", file, len(used))
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(used))) {
			if !names[name] {
				t.Errorf("%s: %s is not in a scrape", file, name)
			}
		}
	}
}

// TestMonitoringRules: the rules are valid, fire when their test says, and each has one;
// the scrape is as Prometheus wants it.
func TestMonitoringRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: scripts/setup/packages.sh test installs it")
	}
	run := func(stdin string, args ...string) {
		t.Helper()
		c := exec.Command(promtool, args...)
		c.Dir, c.Stdin = monitoring, strings.NewReader(stdin)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("", "check", "rules", "lunar.rules.yml")
	run("", "test", "rules", "lunar.rules.test.yml")
	_, page := scraped(t)
	// Its name has been so for long, and what the kernel counts there is not always a counter.
	page = regexp.MustCompile(`(?m)^.*lunar_rdma_port_counter.*\n`).ReplaceAllString(page, "")
	run(page, "check", "metrics")
}

// TestEveryAlertIsTested: each has a case that fires or does not.
func TestEveryAlertIsTested(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(monitoring, "lunar.rules.yml"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(monitoring, "lunar.rules.test.yml"))
	if err != nil {
		t.Fatal(err)
	}
	alerts := regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1)
	if len(alerts) == 0 {
		t.Error("found no alerts")
	}
	for _, a := range alerts {
		if !strings.Contains(string(tests), "alertname: "+a[1]+"\n") {
			t.Errorf("%s has no test", a[1])
		}
	}
}
