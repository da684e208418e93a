package main

import (
	"bytes"
	"context"
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
		Parameters []struct{ Name, In string }
	}
	Components struct {
		Schemas map[string]struct {
			Properties map[string]json.RawMessage
		}
	}
}

// fuzzAPI sends requests to the control socket. Nothing that it names is the canary's:
// who may ask here may end sessions, too.
func fuzzAPI(s *scene) sender {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.Socket)
	}}}
	described := sync.OnceValues(func() (*api, error) {
		answer, err := client.Get("http://control/openapi.json")
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
		request, path, err := a.request(ctx, r)
		if err != nil {
			return "unsendable", nil
		}
		answer, err := client.Do(request)
		if err != nil {
			return path + " " + ended(err), nil
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if !json.Valid(body) && !strings.Contains(path, "metrics") {
			return fmt.Sprintf("%s %s %d not JSON", request.Method, path, answer.StatusCode), err
		}
		return fmt.Sprintf("%s %s %d", request.Method, path, answer.StatusCode), err
	}
}

// request draws one of the operations, or another.
func (a *api) request(ctx context.Context, r *rand.Rand) (request *http.Request, path string, err error) {
	path = pick(r, slices.Sorted(maps.Keys(a.Paths))...)
	method := strings.ToUpper(pick(r, slices.Sorted(maps.Keys(a.Paths[path]))...))
	query := url.Values{}
	at := path
	for _, p := range a.Paths[path][strings.ToLower(method)].Parameters {
		value := pick(r, "other", "nobody", malloryName, anyText(r))
		if p.In == "query" {
			query.Set(p.Name, value)
		}
		at = strings.ReplaceAll(at, "{"+p.Name+"}", url.PathEscape(value))
	}
	switch r.IntN(16) {
	case 0:
		method = pick(r, "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "FUZZ")
	case 1:
		at += pick(r, "/", "//", "/../..", "?a=%zz", "%00")
	}
	request, err = http.NewRequestWithContext(ctx, method, "http://control"+at+"?"+query.Encode(), bytes.NewReader(a.body(r)))
	if err == nil {
		request.Header.Set("Content-Type", pick(r, "application/json", "application/json", "application/json", "text/yaml", ""))
		request.Header.Set("Accept", pick(r, "application/json", "application/cbor", "*/*;q=x"))
	}
	return request, path, err
}

// body draws an object with fields of the API, or something that is none.
func (a *api) body(r *rand.Rand) []byte {
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
