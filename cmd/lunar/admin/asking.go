package admin

import (
	"errors"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
)

// asking is how a command finds the server that it asks.
type asking struct {
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server. Default: as for serve."`
	Socket   string `type:"path" placeholder:"PATH" help:"Control socket of the server. Default: control.sock in the state directory."`

	Server      string `env:"LUNAR_SERVER" placeholder:"URL" help:"Ask a server over TCP: https://host:port."`
	TokenFile   string `env:"LUNAR_TOKEN_FILE" type:"path" placeholder:"FILE" help:"With --server: file whose first line is a token (lunar token create)."`
	CA          string `name:"ca" env:"LUNAR_CA" type:"path" placeholder:"FILE" help:"With --server: certificates by which the server's is judged. Default: the system's."`
	Certificate string `env:"LUNAR_CERTIFICATE" type:"path" placeholder:"FILE" help:"With --server: certificate of this client."`
	Key         string `env:"LUNAR_KEY" type:"path" placeholder:"FILE" help:"With --server: its private key."`
}

// ask asks the server.
func (k asking) ask(do func(*control.Client) error) error {
	api, err := k.connect()
	switch {
	case errors.Is(err, control.ErrNoAnswer):
		return &cli.ExitError{Status: cli.ExitUnreachable, Err: err}
	case err != nil:
		return err
	}
	defer api.Close()
	return do(api)
}

func (k asking) connect() (*control.Client, error) {
	if k.Server != "" && k.Socket == "" {
		r := control.Remote{URL: k.Server, Token: k.TokenFile, CA: k.CA, Certificate: k.Certificate, Key: k.Key}
		if _, err := r.Host(); err != nil {
			return nil, usage(err)
		}
		return control.DialRemote(r)
	}
	if k.Server != "" {
		return nil, usage(errors.New("found --server and --socket, expected one of them"))
	}
	socket, err := k.socket()
	if err != nil {
		return nil, err
	}
	return control.Dial(socket)
}

func (k asking) socket() (string, error) {
	dir := k.StateDir
	if dir == "" && k.Socket == "" {
		var err error
		if dir, err = conf.DefaultStateDir(); err != nil {
			return "", err
		}
	}
	return control.Find(dir, k.StateDir == "", k.Socket), nil
}
