package systemd

import (
	"bytes"
	"io"
	"os"

	"github.com/coreos/go-systemd/v22/journal"
)

// IsJournal reports whether what is written to w goes to the journal, which notes the
// time of each line itself.
func IsJournal(w io.Writer) bool {
	is, err := journal.StderrIsJournalStream()
	return err == nil && is && w == io.Writer(os.Stderr)
}

// Priorities writes each line to w with the priority that its level has for the journal
// (sd-daemon(3)). A line begins with its level, as slog writes it as text or JSON without
// a time.
func Priorities(w io.Writer) io.Writer { return priorities{w} }

type priorities struct{ io.Writer }

// Write implements io.Writer. Lines come one by one.
func (p priorities) Write(line []byte) (int, error) {
	if _, err := p.Writer.Write(append([]byte(priorityOf(line)), line...)); err != nil {
		return 0, err
	}
	return len(line), nil
}

// levels of slog, with the priorities of syslog.
var levels = []struct{ level, priority string }{{"ERROR", "<3>"}, {"WARN", "<4>"}, {"INFO", "<6>"}, {"DEBUG", "<7>"}}

func priorityOf(line []byte) string {
	for _, l := range levels {
		if bytes.HasPrefix(line, []byte("level="+l.level)) || bytes.HasPrefix(line, []byte(`{"level":"`+l.level)) {
			return l.priority
		}
	}
	return "" // the unit's own
}
