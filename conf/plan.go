package conf

// Plan is what leads from the configuration that is running to a file's.
type Plan struct {
	Live    []Difference // what can be put into force while the server runs
	Restart []Difference // what cannot
}

// Between compares two configurations in their normal form.
func Between(running, file *Config) (p Plan) {
	for _, d := range Diff(running, file) {
		if d.live() {
			p.Live = append(p.Live, d)
		} else {
			p.Restart = append(p.Restart, d)
		}
	}
	return p
}

// Follow makes of what a file leaves open what a running server has made of it: the
// cache keeps its segment though no volume needs one any more.
func (c *Config) Follow(running *Config) {
	if !c.Cache.SegmentGiven && c.Cache.Segment == "" {
		c.Cache.Segment = running.Cache.Segment
	}
}

// anyName in a path stands for the name of an object.
const anyName = "*"

// livePaths say what may change while the server runs: what a path begins with.
// Without one it needs a restart.
var livePaths = []struct {
	path  []string
	whole bool // it is about the object itself, which comes or goes
}{
	{path: []string{"log"}},
	{path: []string{"server", "limits"}},
	{path: []string{"server", "nop"}},
	{path: []string{"server", "poll"}},
	{path: []string{"server", "busy-poll"}},
	{path: []string{"server", "poll-budget"}},
	{path: []string{"server", "congestion"}},
	{path: []string{"server", "metrics"}},
	{path: []string{"server", "metrics-token-file"}},
	{path: []string{"server", "metrics-certificate-file"}},
	{path: []string{"server", "metrics-key-file"}},
	{path: []string{"server", "control"}},
	{path: []string{"server", "core-dumps"}},
	{path: []string{"server", "memory-limit"}},
	{path: []string{"cache", "forward-threshold"}},
	{path: []string{"qos", "profile"}},
	{path: []string{"discovery"}},
	{path: []string{"portal-groups"}},
	{path: []string{"auth-groups"}},
	{path: []string{"targets"}},
	{path: []string{"ceph", anyName}, whole: true},
	{path: []string{"volumes", anyName}, whole: true},
	{path: []string{"volumes", anyName, "size"}},
	{path: []string{"volumes", anyName, "write"}},
	{path: []string{"volumes", anyName, "direct"}},
	{path: []string{"volumes", anyName, "read-only"}},
	{path: []string{"volumes", anyName, "threads"}},
	{path: []string{"volumes", anyName, "soft-threshold"}},
	{path: []string{"volumes", anyName, "sanitize-rate"}},
	{path: []string{"volumes", anyName, "snapshots"}},
	{path: []string{"volumes", anyName, "cache"}},
	{path: []string{"volumes", anyName, "owners"}},
	{path: []string{"volumes", anyName, "failback"}},
	{path: []string{"volumes", anyName, "physical-block-size"}},
	{path: []string{"volumes", anyName, "encryption", "key-file"}},
	{path: []string{"volumes", anyName, "encryption", "old-key-file"}},
	{path: []string{"cache", "dirty-limit"}},
	{path: []string{"qos", "rules"}},
	{path: []string{"qos", "groups"}},
	{path: []string{"qos", "overcommit"}},
	{path: []string{"qos", "network"}},
	{path: []string{"qos", "capacities"}},
}

func (d *Difference) live() bool {
	for _, l := range livePaths {
		if d.within(l.path) && (!l.whole || len(d.Path) == len(l.path)) {
			return true
		}
	}
	return false
}

// within reports whether the key is at a path or below it.
func (d *Difference) within(path []string) bool {
	if len(d.Path) < len(path) {
		return false
	}
	for i, step := range path {
		if step != anyName && step != d.Path[i] {
			return false
		}
	}
	return true
}

// Came and Went report whether the difference is an object that only the file
// has, or only the running configuration.
func (d *Difference) Came() bool { return d.Running == nothing }

// Went is the counterpart of Came.
func (d *Difference) Went() bool { return d.File == nothing }

// Change says what becomes of the key: "volumes.disk.size: 2GiB, was 1GiB".
func (d *Difference) Change() string {
	switch {
	case d.Came():
		return d.Key + ": new"
	case d.Went():
		return d.Key + ": removed"
	case d.Running == "" && d.File == "":
		return d.Key + ": changed"
	}
	return d.Key + ": " + d.File + ", was " + d.Running
}
