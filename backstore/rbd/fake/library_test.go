package fake

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"lunar/backstore/rbd"
	"lunar/backstore/rbd/rbdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLibrary(t *testing.T) {
	c := New(nil)
	defer c.Close()
	library, _ := c.Library()
	images := 0
	rbdtest.Run(t, rbdtest.Subject{Library: library, Create: func(_ testing.TB, size int64) rbd.Name {
		images++
		name := rbd.Name{Pool: "rbd", Image: fmt.Sprint("image", images)}
		c.Create(name.String(), size)
		return name
	}})
}
