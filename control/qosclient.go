package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// QoS asks for what the token scheduler goes by.
func (c *Client) QoS(ctx context.Context) (QoS, error) {
	var q QoS
	err := c.Get(ctx, QosPath, &q)
	return q, err
}

// PatchRule changes a rule, or makes one.
func (c *Client) PatchRule(ctx context.Context, name string, change RuleChange) (QoS, error) {
	var q QoS
	err := c.send(ctx, http.MethodPatch, ruleURL(name), change, &q)
	return q, err
}

// DeleteRule takes a rule out of force.
func (c *Client) DeleteRule(ctx context.Context, name string) (QoS, error) {
	var q QoS
	err := c.send(ctx, http.MethodDelete, ruleURL(name), nil, &q)
	return q, err
}

func ruleURL(name string) string { return pathOf(RulePath, "{name}", name) }

// ExplainPath is where Explanation of an initiator is asked for.
func ExplainPath(initiator string) string {
	return ExplanationPath + "?initiator=" + url.QueryEscape(initiator)
}

// Apply puts a configuration file's text into force.
func (c *Client) Apply(ctx context.Context, f File) (Applied, error) {
	var a Applied
	err := c.send(ctx, http.MethodPost, ApplyPath, f, &a)
	return a, err
}

// send asks with a JSON body, nil is none, and decodes the answer into out. The
// error of a request that is refused has a line for each reason.
func (c *Client) send(ctx context.Context, method, path string, in, out any) error {
	return c.sendWith(ctx, method, path, http.Header{}, in, out)
}

// sendWith is send with a header.
func (c *Client) sendWith(ctx context.Context, method, path string, header http.Header, in, out any) error {
	body := []byte(nil)
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	rsp, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", c.at, err)
	}
	defer rsp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(rsp.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %s: %w", c.at, path, err)
	case rsp.StatusCode != http.StatusOK && rsp.StatusCode != http.StatusAccepted:
		return AsRefusal(answer)
	}
	return json.Unmarshal(answer, out)
}

// AsRefusal reads a problem document.
func AsRefusal(body []byte) *Refusal {
	var p struct {
		Detail string
		Status int
		Errors []struct{ Message, Location string }
	}
	if json.Unmarshal(body, &p) != nil {
		return &Refusal{What: "not a problem document"}
	}
	r := &Refusal{What: p.Detail, State: p.Status == http.StatusConflict, Missing: p.Status == http.StatusNotFound, Stale: p.Status == http.StatusPreconditionFailed, Busy: p.Status == http.StatusServiceUnavailable}
	for _, e := range p.Errors {
		r.Reasons = append(r.Reasons, Reason{strings.TrimPrefix(e.Location, "body."), e.Message})
	}
	return r
}

// The paths of the token scheduler.
const (
	QosPath         = "/v1/qos"
	RulePath        = "/v1/qos/rules/{name}"
	ExplanationPath = "/v1/qos/explain"
	ApplyPath       = "/v1/apply"
)
