package control

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxRefusals is how often in a row a server may ask to come again.
const maxRefusals = 30

// patient makes a request again when the server asks for it (503 with Retry-After, RFC 9110
// section 10.2.3): it has done nothing for it then.
type patient struct{ by http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	for refusals := 1; ; refusals++ {
		rsp, err := p.by.RoundTrip(r)
		if err != nil || refusals == maxRefusals || rsp.StatusCode != http.StatusServiceUnavailable {
			return rsp, err
		}
		seconds, err := strconv.ParseUint(rsp.Header.Get("Retry-After"), 10, 16)
		if err != nil || r.Body != nil && r.GetBody == nil {
			return rsp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(rsp.Body, maxAnswer)) // so that the connection serves again
		rsp.Body.Close()
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(time.Duration(seconds) * time.Second):
		}
		if r.GetBody != nil {
			r = r.Clone(r.Context())
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// CloseIdleConnections passes the wish on, which http.Client asks its transport for.
func (p patient) CloseIdleConnections() {
	if c, ok := p.by.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
