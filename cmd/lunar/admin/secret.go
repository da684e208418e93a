package admin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"lunar/control"
	"lunar/internal/cli"
)

// hasSecret reports whether a value of a key is a secret, or has one in it.
func hasSecret(key []string, value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case map[string]any:
		for below, one := range v {
			if hasSecret([]string{below}, one) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, func(one any) bool { return hasSecret(key, one) })
	}
	return key[len(key)-1] == "secret"
}

// maxSecret is longer than any secret of CHAP.
const maxSecret = 1 << 10

// secretFrom reads a secret from a file; -: standard input. Line ends after it are cut off.
func secretFrom(path string) (string, error) {
	from := os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer file.Close()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxSecret+1))
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, err)
	case secret == "" || len(text) > maxSecret:
		return "", fmt.Errorf("%s: found %d bytes, expected a secret", path, len(text))
	}
	return secret, nil
}

// askedSecret is a new secret that somebody enters twice at the terminal.
func askedSecret(ctx context.Context, c cli.Console, user string) (string, error) {
	terminal, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", usage(errors.New("found neither a secret nor a terminal to ask for it: give --secret-from FILE (-: standard input), or secret-file=PATH of a file that the server reads"))
	}
	defer terminal.Close()
	return entered(ctx, c, terminal, user)
}

// entered asks for a secret twice, and shows nothing of it.
func entered(ctx context.Context, c cli.Console, terminal *os.File, user string) (secret string, err error) {
	before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		return "", err
	}
	silent := *before
	silent.Lflag = silent.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG
	if err := unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETSF, &silent); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unix.IoctlSetTermios(int(terminal.Fd()), unix.TCSETSF, before)) }()
	type result struct {
		secret string
		err    error
	}
	ended := make(chan result, 1)
	go func() {
		secret, err := twice(terminal, user)
		ended <- result{secret, err}
	}()
	var out result
	interrupted, _ := following(ctx, c, func(ctx context.Context) error {
		select {
		case out = <-ended:
		case <-ctx.Done():
		}
		return nil
	})
	if interrupted {
		return "", errors.New("interrupted: nothing was changed")
	}
	return out.secret, out.err
}

// twice reads a secret, and whether it was meant.
func twice(terminal io.ReadWriter, user string) (secret string, err error) {
	lines := bufio.NewReader(terminal)
	var entered [2]string
	for i, prompt := range []string{"Secret of " + user + ": ", "The same again: "} {
		fmt.Fprint(terminal, prompt)
		if entered[i], err = lines.ReadString('\n'); err != nil {
			return "", err
		}
		fmt.Fprintln(terminal)
		entered[i] = strings.TrimRight(entered[i], "\r\n")
	}
	switch {
	case entered[0] == "":
		return "", errors.New("found no secret: nothing was changed")
	case entered[0] != entered[1]:
		return "", errors.New("found two different secrets, expected the same twice: nothing was changed")
	}
	return entered[0], nil
}

// withSecret is a user with a secret, in place of the one that he may have.
func withSecret(user control.Object, secret string) control.Object {
	user["secret"] = secret
	if _, given := user["secret-file"]; !given {
		user["secret-file"] = nil
	}
	return user
}
