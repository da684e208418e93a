package target

// SetElsewhere says by which portal groups of other servers targets are reached, by the
// targets' names. It takes the place of what was said before. all must not be changed.
func (s *Server) SetElsewhere(all map[string][]Elsewhere) {
	s.others.Store(&all)
	s.directory.changes.Add(1)
}

// elsewhere implements node.
func (s *Server) elsewhere(target string) []Elsewhere {
	if all := s.others.Load(); all != nil {
		return (*all)[target]
	}
	return nil
}
