package overview

import "testing"

// TestSentence: a message in any letters stays whole.
func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "A.", "all is well.": "All is well.", "ärger mit der Platte": "Ärger mit der Platte.", "磁盘": "磁盘."} {
		if got := sentence(text); got != want {
			t.Errorf("%q: found %q, expected %q", text, got, want)
		}
	}
}
