package conf

import (
	"fmt"
)

// Reported puts a list of problems on lines of their own.
func Reported(err error) error {
	problems, ok := err.(Errors)
	switch {
	case !ok:
		return err
	case len(problems) == 1:
		return fmt.Errorf("the configuration has 1 error:\n%w", err)
	}
	return fmt.Errorf("the configuration has %d errors:\n%w", len(problems), err)
}
