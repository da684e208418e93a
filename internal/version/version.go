// Package version says which version of Lunar a program is.
package version

import (
	"fmt"
	"runtime"
)

// Number is set when linking: -ldflags "-X lunar/internal/version.Number=...".
var Number = "development"

// Line is what a program says of its version.
func Line(program string) string {
	return fmt.Sprintf("%s %s %s/%s %s", program, Number, runtime.GOOS, runtime.GOARCH, runtime.Version())
}
