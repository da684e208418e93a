// Package packed has texts in fewer bytes, for places that take few.
package packed

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
)

// ErrTooLong: a text is longer than whoever reads it takes.
var ErrTooLong = errors.New("the text is too long")

// Of is a text in fewer bytes.
func Of(text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(text)
	if err = errors.Join(err, z.Close()); err != nil {
		panic(err) // of a buffer that takes everything
	}
	return b.Bytes()
}

// Text is what Of was given. It fails with ErrTooLong if that has more bytes than most.
func Text(b []byte, most int) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, int64(most)+1))
	if err == nil && len(text) > most {
		err = ErrTooLong
	}
	return text, err
}
