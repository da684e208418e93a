package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// requestTimeout bounds a request of a Client; one that changes something may
// have to wait for volumes.
const requestTimeout = 2 * time.Minute

// connectTimeout bounds the question whether somebody is there.
const connectTimeout = 5 * time.Second

// maxAnswer bounds what a Client reads, in bytes.
const maxAnswer = 64 << 20

// Client asks a server.
type Client struct {
	at   string // what messages call it
	base string // of URLs
	http *http.Client
}

func newClient(at, base string, by http.RoundTripper) *Client {
	return &Client{at, base, &http.Client{Timeout: requestTimeout, Transport: patient{by}}}
}

// ErrNoAnswer says that no server answers where one is asked for.
var ErrNoAnswer = errors.New("no answer")

// Dial returns a client of the server at socket, after it has tried whether
// there is one: the error, ErrNoAnswer, says what to do if not. Close the Client.
func Dial(socket string) (*Client, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: connectTimeout}).DialContext(ctx, "unix", socket)
	}
	conn, err := dial(context.Background(), "", "")
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w%s", ErrNoAnswer, socket, err, advice(err))
	}
	conn.Close()
	return newClient("control socket "+socket, "http://control", &http.Transport{DialContext: dial}), nil
}

// advice is what to do about a socket that cannot be connected to.
func advice(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return `; start the server (systemctl start lunar, tgtd serve), or name its state directory (--state-dir) or socket (--socket)`
	case errors.Is(err, syscall.ECONNREFUSED):
		return `; the server has died, its log says why; systemctl start lunar, or tgtd serve, starts it again`
	case errors.Is(err, fs.ErrPermission):
		return "; only root, the user that runs the server, and members of the groups of server.control may ask"
	}
	return ""
}

// Raw returns the body of GET path.
func (c *Client) Raw(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	rsp, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.at, err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(rsp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", c.at, path, err)
	case rsp.StatusCode != http.StatusOK:
		if r := AsRefusal(body); len(r.Reasons) > 0 {
			return nil, r
		}
		return nil, fmt.Errorf("%s: %s: %s: %s", c.at, path, rsp.Status, Detail(body))
	}
	return body, nil
}

// streamed makes a request whose answer goes on, and reads that. Other requests have a
// bound on their time, which this one has not.
func (c *Client) streamed(r *http.Request, read func(io.Reader) error) error {
	rsp, err := (&http.Client{Transport: c.http.Transport}).Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", c.at, err)
	}
	defer rsp.Body.Close()
	if rsp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(rsp.Body, maxAnswer)) // what there is of it
		return AsRefusal(body)
	}
	return read(rsp.Body)
}

// Detail is what a problem says.
func Detail(body []byte) string {
	var p struct{ Detail string }
	if json.Unmarshal(body, &p) != nil {
		return "not a problem document"
	}
	return p.Detail
}

// Get decodes the JSON of GET path into v.
func (c *Client) Get(ctx context.Context, path string, v any) error {
	body, err := c.Raw(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s: %s: %w", c.at, path, err)
	}
	return nil
}

// Status asks for everything.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	err := c.Get(ctx, "/v1/status", &s)
	return s, err
}

// Close gives the connections up.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// pathOf puts a value into the place of a path that a parameter in braces holds.
func pathOf(path, parameter, value string) string {
	return strings.Replace(path, parameter, url.PathEscape(value), 1)
}
