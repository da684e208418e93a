package images

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// keyAttribute is the extended attribute that tells with which key a file is enciphered. Files
// that have no key have none.
const keyAttribute = "user.lunar.key"

func keyOf(path string) string {
	var text [64]byte
	n, err := unix.Lgetxattr(path, keyAttribute, text[:])
	if err != nil {
		return ""
	}
	return string(text[:n])
}

func setKey(path, key string) error {
	if key == "" {
		return nil
	}
	if err := unix.Lsetxattr(path, keyAttribute, []byte(key), 0); err != nil {
		return fmt.Errorf("%s: note with which key it is enciphered: %w", path, err)
	}
	return nil
}
