package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// updateDocument replaces what stands between the markers of each section,
// "<!-- bench:NAME -->" and "<!-- /bench:NAME -->".
func updateDocument(path string, sections map[string]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	document := string(text)
	for name, content := range sections {
		if document, err = replaceSection(document, name, content); err != nil {
			return fmt.Errorf("document %s: %w", path, err)
		}
	}
	if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
		return fmt.Errorf("document: %w", err)
	}
	return nil
}

func replaceSection(document, name, content string) (string, error) {
	begin, end := "<!-- bench:"+name+" -->", "<!-- /bench:"+name+" -->"
	before, rest, ok := strings.Cut(document, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("no %s ... %s", begin, end)
	}
	return before + begin + "\n" + strings.TrimRight(content, "\n") + "\n" + end + after, nil
}

// machine says where and how the numbers came about; files is what the volumes are.
func machine(o *options, p plan, s samples, files string) string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	class := ""
	if o.Realtime {
		class = " in the real-time class"
	}
	return fmt.Sprintf("%s; %s, %s CPUs, %s, %s. Server on CPU %s, client on CPU %d%s, %s. "+
		"%s interleaved repeats of %v after %v; medians, and medians of the ratios within a repeat. "+
		"Other processes took %.0f %% of the machine in the median run, %.0f %% in the worst that counts.\n\n",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), cpuField(info, "model name"), cpuCount(info), kernel(), congestion(),
		o.Server, o.Client, class, files, repeats(p, s), p.runtime, p.warmup, 100*median(disturbances(s)), 100*slices.Max(disturbances(s)))
}

func disturbances(s samples) []float64 {
	v := []float64{0}
	for _, rounds := range s {
		for _, r := range rounds {
			v = append(v, r.Foreign)
		}
	}
	return v
}

// repeats are those that there are of each workload.
func repeats(p plan, s samples) string {
	var counts []int
	for _, rounds := range s {
		counts = append(counts, len(rounds))
	}
	if len(counts) == 0 {
		return fmt.Sprint(p.repeats)
	}
	least, most := slices.Min(counts), slices.Max(counts)
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

func cpuField(info []byte, name string) string {
	for line := range bytes.Lines(info) {
		if key, value, ok := bytes.Cut(line, []byte(":")); ok && string(bytes.TrimSpace(key)) == name {
			return string(bytes.TrimSpace(value))
		}
	}
	return "unknown CPU"
}

func cpuCount(info []byte) string {
	return fmt.Sprint(bytes.Count(append([]byte("\n"), info...), []byte("\nprocessor")))
}

func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "unknown kernel"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}
