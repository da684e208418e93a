package control

import (
	"fmt"
	"slices"
	"strings"
)

// Lasting says in words how long the rules in force last: changed is whether
// they are others than those of the configuration file.
func Lasting(changed bool) string {
	if changed {
		return "Not as in the configuration file: until the next start, unless lunar save writes them there."
	}
	return "As in the configuration file."
}

// QoS is what the token scheduler goes by.
type QoS struct {
	RuleSet
	Configured RuleSet  `json:"configured" doc:"Rules and groups of the configuration file, as it was read last."`
	Changed    bool     `json:"changed" doc:"Whether the rules in force are others than those of the configuration file."`
	Lasting    string   `json:"lasting" doc:"How long the rules in force last, in words."`
	Capacity   Capacity `json:"capacity" doc:"What the backing devices can do."`
	Cost       Cost     `json:"cost" doc:"What a command costs."`
	Window     int      `json:"window" doc:"Commands under way of each event thread on each device while there are rules; 0: any number."`
	Network    Network  `json:"network" doc:"What the classes are to the network."`
	Note       string   `json:"note,omitempty" doc:"Remark on the admission of the reservations."`
}

// Network is what classes are outside of the server.
type Network struct {
	DSCP         map[string]int    `json:"dscp" nullable:"false" doc:"Code points that connections of classes send with, by class."`
	GroupNumbers map[string]string `json:"groupNumbers" nullable:"false" doc:"Classes by GROUP NUMBER, for rules with groupNumber."`
	Governor     string            `json:"governor" enum:"false,true,kernel" doc:"Who governs what is under way on connections by class: nobody, the server or the kernel."`
}

// Capacity is what the backing devices and the event threads can do.
type Capacity struct {
	Devices       []Device         `json:"devices" nullable:"false" doc:"Backing devices of the volumes, by name."`
	Threads       []ThreadCapacity `json:"threads" nullable:"false" doc:"Event threads, in order. Every command needs one, as it needs a device."`
	Bottleneck    []string         `json:"bottleneck" nullable:"false" doc:"What is full now: event threads that had hardly a pause in the last second, and devices that commands waited for. None: initiators or the network are the bottleneck, or their limits."`
	Overcommitted bool             `json:"overcommitted" doc:"Whether the reservations are more, which the configuration permits (qos.overcommit)."`
	Warning       string           `json:"warning,omitempty" doc:"The arithmetic, if they are."`
}

// What a Bottleneck is called.
const (
	threadBottleneck = "event thread "
	deviceBottleneck = "device "
)

// ThreadBottleneck is what Bottleneck calls an event thread.
func ThreadBottleneck(name string) string { return threadBottleneck + name }

// DeviceBottleneck is what Bottleneck calls a device.
func DeviceBottleneck(name string) string { return deviceBottleneck + name }

// ThreadCapacity is what an event thread can do, in tokens per second of the mix of commands that
// it has had.
type ThreadCapacity struct {
	Name   string `json:"name" doc:"Its name, as in sessions."`
	Tokens int64  `json:"tokens_per_second" metric:"thread_capacity_tokens_per_second" doc:"What an event thread can do, learnt while it had hardly a pause; 0: it never had so much to do."`
	Served int64  `json:"served_tokens_per_second" metric:"thread_served_tokens_per_second" doc:"What an event thread served in the last second."`
	Load   int    `json:"load_percent" metric:"thread_load_percent" doc:"How much of the last second an event thread had something to do."`
}

// Device is what a backing device can do, in tokens per second.
type Device struct {
	Name      string   `json:"name" doc:"The kernel's name of the disk, the number of a file system without one, or the type and name of a volume in memory."`
	Volumes   []string `json:"volumes" nullable:"false" doc:"Volumes on it."`
	Tokens    int64    `json:"tokens_per_second" metric:"capacity_tokens_per_second" doc:"What a backing device can do, as the scheduler sees it; 0: not known yet."`
	Source    string   `json:"source" enum:"configured,measured,learnt" doc:"Where it comes from; the scheduler follows it from there."`
	Admission int64    `json:"admission_tokens_per_second" doc:"What reservations are compared with; 0: nothing, for no capacity is known."`
	Reserved  int64    `json:"reserved_tokens_per_second" metric:"device_reserved_tokens_per_second" doc:"What is reserved of a backing device in this second, for those who use it."`
	History   []int64  `json:"history" nullable:"false" doc:"Tokens per second in the last seconds, the newest last."`
}

// Cost says how many tokens a command costs.
type Cost struct {
	UnitBytes    int64 `json:"unit_bytes" doc:"Data of one token; a command costs one at least."`
	WritePercent int64 `json:"write_percent" doc:"What a write costs beside a read, in percent."`
}

// RuleSet is rules and the groups that they are about.
type RuleSet struct {
	Rules  []Rule  `json:"rules" nullable:"false" maxItems:"10000" doc:"Rules, by name."`
	Groups []Group `json:"groups" nullable:"false" maxItems:"1000" required:"false" doc:"Groups of initiators, by name."`
}

// Rule says who gets what. It has either initiators or a group.
type Rule struct {
	Name        string   `json:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name, by which commands and metrics tell it."`
	Initiators  []string `json:"initiators,omitempty" nullable:"false" doc:"iSCSI names, or globs for them with * and ?: the rule is about each that matches."`
	Group       string   `json:"group,omitempty" doc:"A group: the rule is about all members together."`
	Target      string   `json:"target,omitempty" doc:"iSCSI name of a target, or a glob: the rule is about each initiator's use of each logical unit. Empty: all."`
	LUN         *uint64  `json:"lun,omitempty" maximum:"16383" doc:"Logical unit number; as target. Absent: all."`
	Reservation Rate     `json:"reservation,omitzero" doc:"What is promised; of its two units, the larger in tokens."`
	Limit       Rate     `json:"limit,omitzero" doc:"What is not exceeded."`
	Burst       Rate     `json:"burst,omitzero" doc:"Commands, and bytes, above the limit that may pass at once after a pause; 0: 10 ms of it."`
	Weight      int64    `json:"weight,omitempty" minimum:"0" maximum:"1000" doc:"Share of the remaining throughput; 0: 1."`
	Class       string   `json:"class,omitempty" enum:"urgent,high,medium,low" doc:"Service class; absent: medium."`
	GroupNumber bool     `json:"groupNumber,omitempty" doc:"Whether commands may name another class by their GROUP NUMBER."`
}

// Rate is an amount per second. 0 is none.
type Rate struct {
	IOPS  int64 `json:"iops,omitempty" minimum:"0" maximum:"1000000000" doc:"Commands per second, large ones counted by their cost; 0: none."`
	Bytes int64 `json:"bytes,omitempty" minimum:"0" maximum:"1099511627776" doc:"Bytes per second; 0: none."`
}

// Group names initiators that rules are about as one.
type Group struct {
	Name       string   `json:"name" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" doc:"Name."`
	Initiators []string `json:"initiators" nullable:"false" minItems:"1" doc:"iSCSI names, or globs for them."`
}

// RuleChange changes a rule: what is absent stays. Initiators take a group away
// and the other way round.
type RuleChange struct {
	Initiators  []string `json:"initiators,omitempty" nullable:"false" doc:"As in a rule."`
	Group       *string  `json:"group,omitempty" doc:"As in a rule."`
	Target      *string  `json:"target,omitempty" doc:"As in a rule; empty: all."`
	LUN         *int64   `json:"lun,omitempty" minimum:"-1" maximum:"16383" doc:"As in a rule; -1: all."`
	Reservation *Rate    `json:"reservation,omitempty" doc:"As in a rule; an empty object: none."`
	Limit       *Rate    `json:"limit,omitempty" doc:"As in a rule; an empty object: none."`
	Burst       *Rate    `json:"burst,omitempty" doc:"As in a rule; an empty object: the default."`
	Weight      *int64   `json:"weight,omitempty" minimum:"1" maximum:"1000" doc:"As in a rule."`
	Class       *string  `json:"class,omitempty" enum:"urgent,high,medium,low" doc:"As in a rule."`
	GroupNumber *bool    `json:"groupNumber,omitempty" doc:"As in a rule."`
}

// Apply changes a rule.
func (c *RuleChange) Apply(r *Rule) {
	if c.Initiators != nil {
		r.Initiators, r.Group = c.Initiators, ""
	}
	if c.Group != nil {
		r.Group, r.Initiators = *c.Group, c.Initiators
	}
	if c.LUN != nil {
		r.LUN = nil
		if *c.LUN >= 0 {
			lun := uint64(*c.LUN)
			r.LUN = &lun
		}
	}
	set(&r.Target, c.Target)
	set(&r.Reservation, c.Reservation)
	set(&r.Limit, c.Limit)
	set(&r.Burst, c.Burst)
	set(&r.Weight, c.Weight)
	set(&r.Class, c.Class)
	set(&r.GroupNumber, c.GroupNumber)
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// File is a configuration file to be put into force.
type File struct {
	Name string `json:"name" minLength:"1" doc:"What messages call it: its absolute path, by which it is known for the one that the server was started with."`
	Text string `json:"text" audit:"-" doc:"What is in it. Files that it names are read by the server."`

	DryRun bool `json:"dryRun,omitempty" doc:"Show the changes without making them."`

	Yes         bool     `json:"yes,omitempty" doc:"Allow changes that end sessions or leave data behind."`
	AllowShrink []string `json:"allowShrink,omitempty" nullable:"false" maxItems:"10000" doc:"Names of volumes that may shrink, and lose the data behind their new end."`
}

// Applied is what has come of a File.
type Applied struct {
	Changes  []string `json:"changes" nullable:"false" doc:"What was changed, in words; none if everything was in force."`
	Warnings []string `json:"warnings" nullable:"false" doc:"What is doubtful in the file."`
	Note     string   `json:"note,omitempty" doc:"Remark on the admission of the reservations."`
	Impacts  []Impact `json:"impacts" nullable:"false" doc:"What of that is not harmless, the worst first."`
	Drift    []Drift  `json:"drift" nullable:"false" doc:"What is changed at run time and stays so."`
	DryRun   bool     `json:"dryRun,omitempty" doc:"Nothing was changed."`
	Lasting  string   `json:"lasting" doc:"How long the configuration in force lasts, in words."`
}

// Outcome is for the log.
func (a Applied) Outcome() string {
	if a.DryRun {
		return "a dry run: nothing was changed"
	}
	return strings.Join(a.Changes, "; ")
}

// Impact is what a change does to those who use the server, and to their data.
type Impact struct {
	Severity  string   `json:"severity" enum:"disruptive,destructive" doc:"destructive: data are lost, or something in use is removed."`
	Key       string   `json:"key,omitempty" doc:"Key of the configuration that it is about, as changes name it; absent: all of it."`
	What      string   `json:"what" doc:"What is done to what the key is of."`
	Sessions  []string `json:"sessions" nullable:"false" doc:"Sessions that are hit, in words."`
	Needs     string   `json:"needs,omitempty" enum:"yes,allowShrink" doc:"Field of the request that has to allow it; absent: none has to."`
	Volume    string   `json:"volume,omitempty" doc:"Name that allowShrink has to have."`
	Permitted bool     `json:"permitted" doc:"Whether it would be done."`
}

// Drift is something in which a server is other than its configuration file says.
type Drift struct {
	Kind string `json:"kind" enum:"configuration,qos,access,drain,freeze,cluster" doc:"configuration: a key, by another file or an older state of it; cluster: the newest revision of the cluster's configuration is not in force; the others: by lunar qos, alua, drain and volume freeze, or initiators."`
	What string `json:"what" doc:"What it is, in words."`
}

// DriftKinds are the kinds of Drift.
var DriftKinds = []string{"configuration", "qos", "access", "drain", "freeze", "cluster"}

// Fields of a File that allow what is destructive, as Impact and the places of reasons
// name them. That of a volume is below NeedsShrink: allowShrink.disk.
const (
	NeedsYes    = "yes"
	NeedsShrink = "allowShrink"
)

// Reason is one of the reasons of a Refusal.
type Reason struct {
	Place string // path in the request's body, such as rules[2].limit.iops, or whatever else says where; may be empty
	Text  string // what was found and what was expected
}

// Refusal is an error that is the asking one's: nothing was changed.
type Refusal struct {
	What    string // that was refused
	State   bool   // the request is in order, but not possible as things are
	Missing bool   // there is nothing that it is about
	Stale   bool   // what it is about is not as its condition has it
	Busy    bool   // others, or the same client, ask for too much at the time
	Reasons []Reason
}

// Error has a line for each reason.
func (r *Refusal) Error() string {
	lines := []string{r.What}
	for _, reason := range r.Reasons {
		lines = append(lines, reason.String())
	}
	return strings.Join(lines, "\n")
}

// String is place and text.
func (r Reason) String() string {
	if r.Place == "" {
		return r.Text
	}
	return fmt.Sprintf("%s: %s", r.Place, r.Text)
}

// Index is where a rule is; -1: nowhere.
func (s *RuleSet) Index(name string) int {
	return slices.IndexFunc(s.Rules, func(r Rule) bool { return r.Name == name })
}

// Rule finds a rule or makes it.
func (s *RuleSet) Rule(name string) *Rule {
	i := s.Index(name)
	if i < 0 {
		i, s.Rules = len(s.Rules), append(s.Rules, Rule{Name: name})
	}
	return &s.Rules[i]
}
