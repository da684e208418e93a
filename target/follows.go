package target

import "slices"

// mostFollows is how many bytes of a nexus may be under way that follow up on its commands. With it
// a nexus reads some GB/s, and its initiator cannot take all of the other node's memory.
const mostFollows = 2 << 20

// follows is what follows up on the commands of a remote nexus: Data-In ahead of their answers, and
// requests for Data-Out. The other node has room for each in memory that all its sessions share,
// until the initiator has taken the data, or sent them.
type follows struct {
	bytes int           // that are not answered
	eager []*remoteTask // those that have more, in the order in which they wait
}

// admit reports whether a task may send so many bytes more. If not, it goes on when it may. A nexus
// that has nothing under way may send anything.
func (f *follows) admit(t *remoteTask, bytes int) bool {
	if len(f.eager) == 0 && (f.bytes == 0 || f.bytes+bytes <= mostFollows) {
		f.bytes += bytes
		return true
	}
	if !t.eager {
		t.eager = true
		f.eager = append(f.eager, t)
	}
	return false
}

// answered lets tasks go on in their order.
func (f *follows) answered(bytes int) {
	f.bytes -= bytes
	waiting := f.eager
	f.eager = nil
	for _, t := range waiting {
		t.eager = false
		t.passWants()
		t.passParts()
	}
}

// leave takes out a task that has ended.
func (f *follows) leave(t *remoteTask) {
	if t.eager {
		t.eager = false
		f.eager = slices.DeleteFunc(f.eager, func(o *remoteTask) bool { return o == t })
	}
}
