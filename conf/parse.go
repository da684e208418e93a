package conf

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"lunar/scheduler"
)

// Load reads the configuration file at path. Besides what Parse reports it
// warns of a file with secrets that everyone may read.
func Load(path string) (*Config, []Warning, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	d, cfg, err := parse(path, data)
	if err != nil {
		return nil, nil, err
	}
	if d.secrets {
		d.warnIfReadable("", path)
	}
	return cfg, inOrder(d.warnings), nil
}

// Parse reads a configuration from its text; name is what messages call it.
// The error is of type Errors and holds every problem that was found. Files
// named by secret-file are read, nothing else outside data is touched.
func Parse(name string, data []byte) (*Config, []Warning, error) {
	d, cfg, err := parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	return cfg, inOrder(d.warnings), nil
}

func newDecoder(name string, data []byte) *decoder {
	return &decoder{src: newSource(name, data), at: map[string]position{}, shared: map[string]Access{}}
}

func parse(name string, data []byte) (*decoder, *Config, error) {
	d := newDecoder(name, data)
	cfg := defaults()
	if root, ok := d.tree(data); ok {
		hideSecrets(d.src, root, "", false)
		d.config(node{ast: root}, cfg)
		d.validate(cfg)
	}
	if len(d.problems) > 0 {
		return nil, nil, Errors(inOrder(d.problems))
	}
	cfg.normalize()
	return d, cfg, nil
}

// ParseRules reads the keys groups and rules of a qos section, as YAML or JSON,
// and is as strict as Parse; keys in messages begin with qos. A command costs
// cost. The result is in its normal form.
func ParseRules(name string, data []byte, cost scheduler.Cost) ([]scheduler.Rule, []scheduler.Group, error) {
	d, q := newDecoder(name, data), QoS{Cost: cost}
	if root, ok := d.tree(data); ok {
		d.mapping(node{path: "qos", ast: root}, ruleKeys(&q))
		d.validateRules(&q)
	}
	if len(d.problems) > 0 {
		return nil, nil, Errors(inOrder(d.problems))
	}
	rules, groups := NormalRules(q.Rules, q.Groups)
	return rules, groups, nil
}

// tree parses the YAML syntax. An empty file has a nil tree.
func (d *decoder) tree(data []byte) (ast.Node, bool) {
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntaxError(err)
		return nil, false
	}
	var bodies []ast.Node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, true
	case 1:
		return bodies[0], true
	}
	d.src.hideUnparsed()
	d.failAt(node{ast: bodies[1]}.place(), "", "a second YAML document", "one document per file")
	return nil, false
}

// syntaxError reports what the YAML parser said, at its place.
func (d *decoder) syntaxError(err error) {
	d.src.hideUnparsed()
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil {
		d.problems = append(d.problems, Problem{File: d.src.name, Found: "a syntax error", Expected: "YAML"})
		return
	}
	d.failAt(placeOf(at.GetToken()), "", "a syntax error: "+at.GetMessage(), "YAML")
}

// warnIfReadable warns of a file that holds secrets and that everyone may
// read.
func (d *decoder) warnIfReadable(key, path string) {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return
	}
	mode := fmt.Sprintf("mode %04o on %s, which holds secrets", info.Mode().Perm(), path)
	d.warn(key, mode, "a file that others cannot read (chmod 600 "+filepath.Base(path)+")")
}
