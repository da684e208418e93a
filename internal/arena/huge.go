package arena

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Huge says whether an arena uses huge pages.
type Huge uint8

// The ways to use huge pages.
const (
	HugeAuto    Huge = iota // reserved ones if enough are free, else transparent ones if the kernel gives them
	HugeOff                 // pages of the usual size
	HugeRequire             // reserved ones, or an error
)

var hugeNames = [...]string{HugeAuto: "auto", HugeOff: "off", HugeRequire: "require"}

// IfFree returns the way that does not fail for lack of huge pages.
func (h Huge) IfFree() Huge {
	if h == HugeRequire {
		return HugeAuto
	}
	return h
}

// String returns the name in the configuration.
func (h Huge) String() string { return hugeNames[h] }

// ParseHuge parses "auto", "off" or "require".
func ParseHuge(text string) (Huge, error) {
	for h, name := range hugeNames {
		if text == name {
			return Huge(h), nil
		}
	}
	return 0, fmt.Errorf("huge pages %q: expected auto, off or require", text)
}

// Pages tells what pages an arena is made of.
type Pages uint8

// The kinds of pages.
const (
	SmallPages       Pages = iota // of the usual size
	TransparentPages              // the kernel was asked for huge ones and may give some
	HugePages                     // reserved huge pages
)

var pagesNames = [...]string{SmallPages: "small", TransparentPages: "transparent huge", HugePages: "huge"}

// String names the kind for the log.
func (p Pages) String() string { return pagesNames[p] }

// The kernel's switches for transparent huge pages.
const (
	thpAnonymous = "/sys/kernel/mm/transparent_hugepage/enabled"
	thpShared    = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
)

// Advise asks for transparent huge pages for mem, before it is populated.
// shared says that it is of a file in a memory file system. The reason tells why
// the kernel will not give any.
func Advise(mem []byte, shared bool) (pages Pages, reason string) {
	path := thpAnonymous
	if shared {
		path = thpShared
	}
	if mode := selected(path); mode == "never" || mode == "deny" || mode == "" {
		return SmallPages, fmt.Sprintf("%s is %q", path, mode)
	}
	if err := unix.Madvise(mem, unix.MADV_HUGEPAGE); err != nil {
		return SmallPages, fmt.Sprintf("madvise: %v", err)
	}
	return TransparentPages, ""
}

// selected returns the word in brackets of a file such as "always [madvise]
// never"; empty if there is none.
func selected(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(text), "[")
	word, _, ok := strings.Cut(after, "]")
	if !ok {
		return ""
	}
	return word
}
