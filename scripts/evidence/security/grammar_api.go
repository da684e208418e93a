package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// api is what /openapi.json says that matters to somebody who sends requests.
type api struct {
	Paths map[string]map[string]struct {
		Parameters []struct {
			Name, In string
			Schema   struct{ Type any } // a name, or several
		}
	}
	Components struct {
		Schemas map[string]struct {
			Properties map[string]json.RawMessage
		}
	}
}

// fuzzAPI sends requests to the control socket, as root, and over TLS with a token of each
// role, with wrong ones and with none. Nothing that it names is the canary's: who may ask
// here may end sessions, too. No answer has a secret, and no reader changes anything.
func fuzzAPI(s *scene) sender {
	local := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.Socket)
	}}}
	remote := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // of this machine
	described := sync.OnceValues(func() (*api, error) {
		answer, err := local.Get("http://control/openapi.json")
		if err != nil {
			return nil, err
		}
		defer answer.Body.Close()
		a := &api{}
		return a, json.NewDecoder(answer.Body).Decode(a)
	})
	return func(ctx context.Context, r *rand.Rand) (string, error) {
		a, err := described()
		if err != nil {
			return "", err
		}
		as, client, base := "root", local, "http://control"
		if s.Control != "" && !odds(r, 3) {
			as, client, base = pick(r, "read", "operate", "admin"), remote, "https://"+s.Control
			if odds(r, 500) { // the answer waits
				as = "wrong"
			}
		}
		request, path, err := a.request(ctx, r, base)
		if err != nil {
			return "unsendable", nil
		}
		if as != "root" {
			request.Header.Set("Authorization", "Bearer "+s.Tokens[as])
		}
		answer, err := client.Do(request)
		if err != nil {
			return path + " " + ended(err), nil
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return strings.Join(append(s.wrongAnswer(as, request.Method, answer.StatusCode, body), signatureOf(request.Method, path, answer, body)), "\n"), err
	}
}

// wrongAnswer is what no answer may be.
func (s *scene) wrongAnswer(as, method string, status int, body []byte) (wrong []string) {
	if as == "read" && status/100 == 2 && method != http.MethodGet && method != http.MethodHead {
		wrong = append(wrong, crashed+": a reader changed something: "+method)
	}
	if as == "wrong" && status/100 == 2 {
		wrong = append(wrong, crashed+": a wrong token was taken")
	}
	for _, secret := range append([]string{string(canaryCHAP.Secret), string(malloryCHAP.Secret), mutualSecret}, slices.Collect(maps.Values(s.Tokens))...) {
		if bytes.Contains(body, []byte(secret)) {
			wrong = append(wrong, crashed+": a secret was told")
		}
	}
	return wrong
}

// mutualSecret is what fuzzing writes as secrets.
const mutualSecret = "secret-of-the-fuzzer"

func signatureOf(method, path string, answer *http.Response, body []byte) string {
	kind := answer.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "application/") && !strings.HasSuffix(kind, "x-ndjson") && !json.Valid(body) {
		return fmt.Sprintf("%s %s %d not JSON", method, path, answer.StatusCode)
	}
	return fmt.Sprintf("%s %s %d", method, path, answer.StatusCode)
}

// parameter draws a value of its type, or of another.
func parameter(r *rand.Rand, name, kind string) string {
	switch {
	case name == "follow":
		return "false"
	case odds(r, 8):
		return anyText(r)
	case kind == "boolean":
		return pick(r, "true", "false")
	case kind == "integer":
		return pick(r, "1", "2", "0", fmt.Sprint(number(r)))
	case name == "section":
		return pick(r, "log", "qos", "discovery", "none")
	case name == "lun":
		return pick(r, "0", "1", "16383")
	case name == "kind":
		return pick(r, "login", "change", "health")
	case strings.HasPrefix(name, "allow"), name == "keep":
		return pick(r, "other", "running")
	}
	return pick(r, "other", "fuzz-a", "fuzz-b", "nobody", prefix+"fuzz", malloryName)
}

// objects draw bodies of what the configuration has, by path, which are right mostly.
var objects = map[string]func(r *rand.Rand) any{
	"/v1/volumes/{name}": func(r *rand.Rand) any {
		return map[string]any{"type": pick(r, "ram", "null"), "size": pick(r, "1MiB", "2MiB", "x"), "read-only": odds(r, 2)}
	},
	"/v1/targets/{name}": func(r *rand.Rand) any {
		return map[string]any{"portal-groups": []string{"back"}, "auth-group": pick(r, "none", "fuzz-a"), "luns": []any{map[string]any{"lun": r.IntN(3), "volume": pick(r, "fuzz-a", "fuzz-b", "other")}}}
	},
	"/v1/targets/{name}/luns/{lun}": func(r *rand.Rand) any { return map[string]any{"volume": pick(r, "fuzz-a", "fuzz-b")} },
	"/v1/auth-groups/{name}": func(r *rand.Rand) any {
		return map[string]any{"chap": []any{map[string]any{"user": "fuzz", "secret": mutualSecret}}}
	},
	"/v1/auth-groups/{name}/users/{user}": func(r *rand.Rand) any { return map[string]any{"secret": mutualSecret} },
	"/v1/qos/rules/{name}": func(r *rand.Rand) any {
		return map[string]any{"initiators": []string{malloryName}, "limit": map[string]any{"iops": 100 + r.IntN(1000)}}
	},
	"/v1/volumes/{name}/freeze": func(r *rand.Rand) any { return map[string]any{"deadline": "1s", "attended": odds(r, 2)} },
	"/v1/changes": func(r *rand.Rand) any {
		edit := func(name string) any {
			e := map[string]any{"path": []string{"volumes", name}}
			if e["set"] = any(map[string]any{"type": "null", "size": "1MiB"}); odds(r, 2) {
				delete(e, "set")
				e["remove"] = true
			}
			return e
		}
		return map[string]any{"edits": []any{edit("fuzz-a"), edit("fuzz-b")}, "yes": odds(r, 2), "dryRun": odds(r, 2)}
	},
	"/v1/rollback": func(r *rand.Rand) any { return map[string]any{"generation": 1 + r.IntN(4), "dryRun": true} },
	"/v1/apply":    func(r *rand.Rand) any { return map[string]any{"name": "fuzz", "text": anyText(r), "dryRun": true} },
}

// request draws one of the operations, or another.
func (a *api) request(ctx context.Context, r *rand.Rand, base string) (request *http.Request, path string, err error) {
	path = pick(r, slices.Sorted(maps.Keys(a.Paths))...)
	method := strings.ToUpper(pick(r, slices.Sorted(maps.Keys(a.Paths[path]))...))
	query := url.Values{}
	at := path
	for _, p := range a.Paths[path][strings.ToLower(method)].Parameters {
		value := parameter(r, p.Name, fmt.Sprint(p.Schema.Type))
		switch {
		case p.In == "path":
			at = strings.ReplaceAll(at, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query" && (p.Name == "follow" || odds(r, 3)): // a stream ends with the newest
			query.Set(p.Name, value)
		}
	}
	switch r.IntN(16) {
	case 0:
		method = pick(r, "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "FUZZ")
	case 1:
		at += pick(r, "/", "//", "/../..", "?a=%zz", "%00")
	}
	request, err = http.NewRequestWithContext(ctx, method, base+at+"?"+query.Encode(), bytes.NewReader(a.body(r, path)))
	if err == nil {
		if odds(r, 3) {
			request.Header.Set(pick(r, "If-Match", "If-None-Match"), pick(r, "*", `"0"`, `"`+anyText(r)+`"`))
		}
		if odds(r, 8) {
			request.Header.Set("Last-Event-ID", pick(r, "x-1", "", anyText(r)))
		}
		request.Header.Set("Content-Type", pick(r, "application/json", "application/json", "application/json", "text/yaml", ""))
		request.Header.Set("Accept", pick(r, "application/json", "application/cbor", "*/*;q=x"))
	}
	return request, path, err
}

// body draws an object with fields of the API or of the configuration, or something that
// is none.
func (a *api) body(r *rand.Rand, path string) []byte {
	if make, ok := objects[path]; ok && !odds(r, 4) {
		text, err := json.Marshal(make(r))
		if err == nil {
			return text
		}
	}
	names := slices.Sorted(maps.Keys(a.Components.Schemas))
	fields := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(a.Components.Schemas[pick(r, names...)].Properties)) {
		if !odds(r, 4) {
			fields[name] = value(r, 3)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil || odds(r, 10) {
		return pick(r, nil, []byte("{"), []byte("null"), []byte(strings.Repeat("[", r.IntN(20000))), noise(r, r.IntN(2000)), []byte(`{"a":1,"a":2}`))
	}
	return text
}

// value draws a JSON value that names nothing of the canary's, nor everything.
func value(r *rand.Rand, depth int) any {
	switch r.IntN(9) {
	case 0:
		return number(r)
	case 1:
		return -int64(number(r) >> 1)
	case 2:
		return r.Float64() * 1e300
	case 3:
		return odds(r, 2)
	case 4:
		return nil
	case 5:
		if depth > 0 {
			return []any{value(r, depth-1), value(r, depth-1)}
		}
	case 6:
		if depth > 0 {
			return map[string]any{"name": value(r, depth-1), "iops": value(r, depth-1)}
		}
	case 7:
		return strings.ReplaceAll(anyText(r), "*", "-")
	}
	return pick(r, "other", "nobody", malloryName, "back", "1s", "10MiB", "none")
}
