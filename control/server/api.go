package server

import (
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// metricsPath is where Prometheus asks.
const metricsPath = "/metrics"

// newAPI routes everything that the socket serves.
func newAPI(c Config, metrics http.Handler, f *feed, a *async, q *turns) *http.ServeMux {
	mux := metricsOnly(metrics, probes{c.Vitals})
	config := huma.DefaultConfig("Lunar control API", c.Version)
	config.Info.Description = "State of a running tgtd. Sizes are in bytes, counters begin at zero when the server or the session does."
	config.DocsPath = ""     // its page needs the internet
	config.SchemasPath = ""  // /openapi.json has them
	config.CreateHooks = nil // no $schema in every answer
	config.Transformers = append(config.Transformers, withoutValues)
	api := humago.New(mux, config)
	a.api = api
	api.UseMiddleware(permits(api), a.middleware, q.middleware(api))
	for _, add := range resources {
		add(api, c.Source)
	}
	f.add(api)
	newLookout(c.Source, f.stream).add(api)
	(&tracing{source: c.Source, seats: newSeats(maxTraces, maxTraces/2), under: map[int]*seat{}}).add(api)
	addApply(api, c.Source, c.MaxFile)
	a.add()
	a.describe()
	return mux
}

// withoutValues takes out of a problem what was found in the request: it may be
// a configuration file, with its secrets.
func withoutValues(_ huma.Context, _ string, v any) (any, error) {
	if p, ok := v.(*huma.ErrorModel); ok {
		for _, e := range p.Errors {
			e.Value = nil
		}
	}
	return v, nil
}

// metricsOnly routes the metrics, and answers everything else with a problem.
func metricsOnly(metrics http.Handler, p probes) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET "+metricsPath, metrics)
	mux.Handle("GET "+alivePath, p)
	mux.Handle("GET "+readyPath, p)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { unroutable(mux, w, r) })
	return mux
}

// straight refuses paths that a ServeMux answers with another one, where clients repeat the
// request: to delete the user .. of an auth group would be to delete the group.
func straight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at := r.URL.EscapedPath(); path.Clean(at) != at {
			problem(w, http.StatusNotFound, "found the path "+at+", expected one without empty parts, . and ..: no object has such a name")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unroutable answers a request for which there is no route, or one of another
// method.
func unroutable(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if _, pattern := mux.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host}); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		problem(w, http.StatusNotFound, "found no "+r.URL.Path+"; GET /openapi.json lists what there is")
		return
	}
	allow := strings.Join(allowed, ", ")
	w.Header().Set("Allow", allow)
	problem(w, http.StatusMethodNotAllowed, "found "+r.Method+", expected "+allow)
}
