package main

import (
	"fmt"
	"syscall"

	"lunar/scripts/evidence/notes"
	"lunar/scripts/evidence/site"
)

// stuck ends the owner, or has it stand still, in turns, while its writes are stuck in an OSD. Users
// send them again to the next owner, and newer ones to the same blocks: one that the OSD carried
// out after those would be found, since each block is read again and again.
func (s *scene) stuck(at *site.Site) error {
	signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP}[s.caught.rounds%2]
	waiting := 0
	taken, err := at.Stuck(signal, func() { waiting = s.load.unanswered() })
	s.caught.rounds++
	s.caught.writes += waiting
	if waiting > 0 && taken {
		s.caught.counted++
	}
	s.found = []notes.Fact{notes.Found("rounds in which writes were stuck and another node served before the owner came back, and those writes",
		fmt.Sprintf("%d of %d, %d", s.caught.counted, s.caught.rounds, s.caught.writes), s.caught.counted == s.caught.rounds)}
	return err
}

// unanswered counts the users' writes under way.
func (l *load) unanswered() (writes int) {
	for i := range l.blocks {
		if b := &l.blocks[i]; b.Sent.Load() != b.Acked.Load() {
			writes++
		}
	}
	return writes
}
