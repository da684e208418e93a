package member

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"lunar/internal/durable"
)

// Join makes a member of a cluster that is there, by a token. What passes, such as members that do
// not answer, or are changing, it asks for again until ctx ends; told hears of each new reason
// to wait.
func (d Dir) Join(ctx context.Context, tokenText string, n Node, told func(why error)) error {
	t, err := tokenOf(tokenText)
	if err != nil {
		return err
	}
	if err := errors.Join(n.judge(), n.isHere()); err != nil {
		return err
	}
	if err := d.vacant(); err != nil {
		return err
	}
	key, keyText, err := d.ownKey()
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	text, err := json.Marshal(application{t.Secret, n, public})
	if err != nil {
		return err
	}
	given, err := applicant{t, text, newClient(t.Pin), told}.apply(ctx)
	if err != nil {
		return err
	}
	return d.lay(given.Settings, map[string][]byte{
		authorityFile: given.Authority, signingFile: given.Signing, ownFile: given.Own, ownKeyFile: keyText,
	})
}

// ownKey is the key by which the node asks to be admitted. It is kept before: who has died, or given
// up, since may have used its token, and is known by the key.
func (d Dir) ownKey() (*ecdsa.PrivateKey, []byte, error) {
	if text, err := durable.Read(d.path(ownKeyFile)); err == nil {
		if key, err := privateOf(text); err == nil {
			return key, text, nil
		}
	}
	key, text, err := newKey()
	if err == nil {
		err = d.make()
	}
	if err == nil {
		err = durable.Replace(d.path(ownKeyFile), text)
	}
	return key, text, err
}

const (
	joinPath     = "/join"
	joinPatience = 30 * time.Second // of one question
	joinPause    = time.Second      // before members are asked again
	dialPatience = 5 * time.Second  // there may be other members
	// Bytes of an application, which a stranger may have made, and of an admission.
	maxApplication, maxMessage = 16 << 10, 1 << 20
)

// applicant asks the members of a token to be admitted.
type applicant struct {
	token
	text   []byte // the application
	client *http.Client
	told   func(why error)
}

// newClient asks servers whose authority has a pin.
func newClient(pin []byte) *http.Client {
	transport := &http.Transport{TLSClientConfig: pinned(pin), DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: dialPatience}).DialContext}
	return &http.Client{Transport: transport, Timeout: joinPatience}
}

// apply asks one member after the other, and again, until one has answered for good.
func (a applicant) apply(ctx context.Context) (given admission, err error) {
	for was := ""; ; {
		foreign := 0
		for _, m := range a.Members {
			var again bool
			if given, again, err = a.ask(ctx, m); err == nil || !again && !errors.Is(err, errForeign) {
				return given, err
			}
			if errors.Is(err, errForeign) {
				foreign++
			}
		}
		if foreign == len(a.Members) {
			return given, err
		}
		if text := err.Error(); text != was {
			was = text
			a.told(err)
		}
		select {
		case <-time.After(joinPause):
		case <-ctx.Done():
			return given, fmt.Errorf("%w: at last %w", ctx.Err(), err)
		}
	}
}

// ask asks one member; again says that the same may succeed later.
func (a applicant) ask(ctx context.Context, member string) (given admission, again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+member+joinPath, bytes.NewReader(a.text))
	if err != nil {
		return given, false, err
	}
	answer, err := a.client.Do(r)
	if err != nil {
		return given, true, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxMessage))
	switch {
	case err != nil:
		return given, true, err
	case answer.StatusCode != http.StatusOK:
		return given, answer.StatusCode == http.StatusServiceUnavailable, fmt.Errorf("%s: %s", member, bytes.TrimSpace(body))
	}
	return given, false, json.Unmarshal(body, &given)
}
