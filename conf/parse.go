package conf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"lunar/internal/trust"
)

// Load reads the configuration file at path. Besides what Parse reports it
// warns of a file with secrets that everyone may read.
func Load(path string) (*Config, []Warning, error) {
	f, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	return f.Parse(nil)
}

// File is the text of a configuration file, which was read once.
type File struct {
	Name   string
	Text   []byte
	doubts []trust.Doubt // about who may change it
}

// Open reads the text of a file; an empty path is that of DefaultFile.
func Open(path string) (*File, error) {
	if path == "" {
		return &File{Name: "default configuration", Text: DefaultFile}, nil
	}
	f := &File{Name: path}
	var err error
	f.Text, err = read(path, func(d trust.Doubt) { f.doubts = append(f.doubts, d) })
	return f, err
}

// Parse is Load of the text, together with what the nodes of its cluster have in common;
// nil: nothing.
func (f *File) Parse(joint *Joint) (*Config, []Warning, error) { return f.parse(joint, false) }

// Draft is Parse for a file that is not to be served as it is: it warns of secrets that
// Print has withheld, where Load and Parse fail.
func (f *File) Draft(joint *Joint) (*Config, []Warning, error) { return f.parse(joint, true) }

func (f *File) parse(joint *Joint, draft bool) (*Config, []Warning, error) {
	d, cfg, err := parse(f.Name, f.Text, joint, draft)
	if err != nil {
		return nil, nil, err
	}
	for _, doubt := range f.doubts {
		d.warn("", doubt.Found+" on "+doubt.Path, "that nobody else may change the configuration ("+doubt.Mend+")")
	}
	if d.secrets {
		d.warnIfReadable("", f.Name)
	}
	return cfg, inOrder(d.warnings), nil
}

// MaxFile is the longest text of a configuration, however it comes.
const MaxFile = 64 * MiB

// ReadFile reads the text of a configuration file. One that everybody may change is
// refused: who writes it decides what the server reads and overwrites.
func ReadFile(path string) ([]byte, error) { return read(path, nil) }

func read(path string, warn func(trust.Doubt)) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	if err := trust.Check(path, warn); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(MaxFile)+1))
	if err == nil && len(data) > int(MaxFile) {
		err = fmt.Errorf("%s: %w", path, errTooLong)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return data, nil
}

var errTooLong = fmt.Errorf("found more than %v of text, expected at most that", MaxFile)

// Parse reads a configuration from its text; name is what messages call it.
// The error holds every problem that was found, as Errors, unless the text is
// longer than MaxFile. Files
// named by secret-file are read, nothing else outside data is touched.
func Parse(name string, data []byte) (*Config, []Warning, error) {
	return ParseWith(name, data, nil)
}

// ParseWith is Parse of a node's text together with what the nodes of its cluster have in
// joint; nil: nothing.
func ParseWith(name string, data []byte, joint *Joint) (*Config, []Warning, error) {
	d, cfg, err := parse(name, data, joint, false)
	if err != nil {
		return nil, nil, err
	}
	return cfg, inOrder(d.warnings), nil
}

// ParseDraft is Parse for a text that is not to be served as it is: it warns of secrets
// that Print has withheld.
func ParseDraft(name string, data []byte) (*Config, []Warning, error) {
	d, cfg, err := parse(name, data, nil, true)
	if err != nil {
		return nil, nil, err
	}
	return cfg, inOrder(d.warnings), nil
}

// Defaults is what an empty file says.
func Defaults() *Config { return defaults() }

func newDecoder(name string, data []byte) *decoder {
	return &decoder{src: newSource(name, data), at: map[string]position{}, shared: map[string]Access{}, masked: map[string]string{}}
}

func parse(name string, data []byte, joint *Joint, draft bool) (*decoder, *Config, error) {
	if len(data) > int(MaxFile) {
		return nil, nil, fmt.Errorf("configuration: %s: %w", name, errTooLong)
	}
	data = withoutMark(data)
	d := newDecoder(name, data)
	d.draft, d.src.joint = draft, joint.source()
	cfg := defaults()
	if root, ok := d.tree(data); ok && empty(root) {
		d.add(Problem{File: name, Found: "an empty file", Expected: "a configuration; a file that was cut off must not remove what is served"})
	} else if ok {
		d.config(node{ast: joint.with(root)}, cfg)
		d.validate(cfg)
	}
	return d, cfg, d.finish(cfg)
}

// Beginning reads of the text what a start needs before it can read the rest: log and cluster.
// What is wrong with other sections is left for Parse to tell.
func (f *File) Beginning() (*Config, error) {
	text := withoutMark(f.Text)
	d, cfg := newDecoder(f.Name, text), defaults()
	root, ok := d.tree(text)
	if sections, mapping := mappingOf(root); ok && mapping {
		own := *sections
		own.Values = slices.DeleteFunc(slices.Clone(own.Values), func(pair *ast.MappingValueNode) bool {
			key, _ := node{ast: pair.Key}.scalar()
			return key != "log" && key != "cluster"
		})
		d.config(node{ast: &own}, cfg)
	}
	return cfg, d.errors()
}

// finish makes the configuration what it is told to be, unless there are problems.
func (d *decoder) finish(cfg *Config) error {
	if err := d.errors(); err != nil {
		return err
	}
	cfg.normalize()
	return nil
}

// tree parses the YAML syntax. An empty file has a nil tree.
func (d *decoder) tree(data []byte) (ast.Node, bool) {
	bodies, err := parseYAML(data, partEntries)
	if err != nil {
		d.syntaxError(err)
		return nil, false
	}
	switch len(bodies) {
	case 0:
		return nil, true
	case 1:
		return bodies[0], true
	}
	d.failAt(node{ast: bodies[1]}.place(), "", "a second YAML document", "one document per file")
	return nil, false
}

// empty reports whether a document has no keys.
func empty(root ast.Node) bool {
	m, mapping := root.(*ast.MappingNode)
	return node{ast: root}.missing() || mapping && len(m.Values) == 0
}

// syntaxError reports where the YAML parser failed. What it says may quote the
// text, so that only what is known to quote nothing is passed on.
func (d *decoder) syntaxError(err error) {
	if deep, ok := errors.AsType[tooDeep](err); ok {
		d.failAt(placeOf(deep.at), "", deep.Error()+" of lists and mappings within each other", fmt.Sprintf("no more than %d", maxDepth))
		return
	}
	found := "a syntax error"
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		d.add(Problem{File: d.src.name, Found: found, Expected: "YAML"})
		return
	}
	if slices.Contains(syntaxErrors, at.GetMessage()) {
		found += ": " + at.GetMessage()
	}
	d.failAt(placeOf(at.GetToken()), "", found, "YAML")
}

// syntaxErrors are what the YAML parser says without a word of the text.
var syntaxErrors = []string{
	"',' or ']' must be specified",
	"',' or '}' must be specified",
	"block sequence entries are not allowed in this context",
	"could not find '[' character corresponding to ']'",
	"could not find '{' character corresponding to '}'",
	"could not find end character of double-quoted text",
	"could not find end character of single-quoted text",
	"could not find flow mapping end token '}'",
	"could not find map value",
	"could not find value for mapping key",
	"found a tab character where an indentation space is expected",
	"found an invalid key for this map",
	"found character '\t' that cannot start any token",
	"mapping value is not allowed in this context",
	"non-map value is specified",
	"sequence end token ']' not found",
	"tab character cannot be used for indentation in double-quoted text",
	"tab character cannot be used for indentation in single-quoted text",
	"tab character cannot use as a map key directly",
	"tab character cannot use as a sequence delimiter",
	"unexpected key name",
	"unexpected map key",
	"unexpected map key-value pair",
	"unexpected scalar value",
	"unexpected scalar value type",
	"value is not allowed in this context",
	"value is not allowed in this context. map key-value is pre-defined",
}
