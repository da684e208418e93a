package daemon

import (
	"lunar/conf"
	"lunar/control"
	"lunar/internal/systemd"
)

// load reads the configuration that the flags name and applies the flags that
// override it. joint is the cluster's; nil: none.
func (k Options) load(dir string, joint *conf.Joint) (loaded, error) {
	f, err := conf.Open(k.Config)
	if err != nil {
		return loaded{}, err
	}
	return k.parse(f, dir, joint)
}

// parse is load of a file that was read.
func (k Options) parse(f *conf.File, dir string, joint *conf.Joint) (l loaded, err error) {
	l.text = f.Text
	if l.Config, l.warnings, err = f.Parse(joint); err == nil {
		err = k.override(l.Config, dir)
	}
	return l, err
}

// loaded is a configuration with its text.
type loaded struct {
	*conf.Config
	warnings []conf.Warning
	text     []byte
}

// override applies the flags that override a configuration.
func (k Options) override(cfg *conf.Config, dir string) error {
	cfg.InStateDir(dir)
	if k.LogLevel != "" {
		cfg.Log.Level = k.LogLevel
	}
	return cfg.SetListen(k.Listen)
}

// Options are what the command line says of a server.
type Options struct {
	Config             string   `short:"c" type:"path" placeholder:"FILE" help:"Configuration file. Without one, a volume of 1 GiB is served to this machine."`
	StateDir           string   `type:"path" placeholder:"DIR" help:"Directory of the server's identity and of volumes with relative paths. Default: /var/lib/lunar for root, lunar in the XDG state directory for others."`
	Socket             string   `type:"path" placeholder:"PATH" help:"Control socket for the program lunar. Default: control.sock in the state directory."`
	Listen             []string `sep:"," placeholder:"ADDR:PORT" help:"Listen here instead of at the configured address; repeatable. :3260 is every IPv4 and IPv6 address."`
	control.Allowances `embed:""`
	LogLevel           string `enum:",debug,info,warn,error" default:"" placeholder:"LEVEL" help:"debug, info, warn or error; overrides the configuration."`
	// Service is that which the process is of; nil: of none.
	Service *systemd.Service `kong:"-"`
	// Alone says that the process serves nothing else, so that it may be confined for good.
	Alone bool `kong:"-"`
}
