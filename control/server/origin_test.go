package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"testing"
)

// TestOtherSitesChangeNothing: a page of another site that an operator's browser shows
// changes nothing, though the browser sends a certificate by itself.
func TestOtherSitesChangeNothing(t *testing.T) {
	r := serveRemote(t)
	own := authority(t).issue(t, x509.Certificate{Subject: pkix.Name{CommonName: "ops"}})
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.trusted, Certificates: []tls.Certificate{own}}}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	for _, tc := range []struct {
		name, header, value string
		want                int
	}{
		{"a program", "Accept", "*/*", http.StatusOK},
		{"the server's own page", "Origin", r.url, http.StatusOK},
		{"the server's own page, as browsers say", "Sec-Fetch-Site", "same-origin", http.StatusOK},
		{"another site", "Origin", "https://other.example.org", http.StatusForbidden},
		{"another site, as browsers say", "Sec-Fetch-Site", "cross-site", http.StatusForbidden},
	} {
		q, err := http.NewRequest(http.MethodPost, r.url+"/v1/volumes/v/resync", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set(tc.header, tc.value)
		answer, err := c.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != tc.want {
			t.Errorf("%s: found %d, expected %d", tc.name, answer.StatusCode, tc.want)
		}
	}
}
