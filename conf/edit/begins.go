package edit

// Begins is where the lines of the sections begin, and those of the objects in them that
// have lines of their own: what is between two of these places means the same wherever it
// is. There are none if the text is not so divided.
func (d *Document) Begins() (all []int) {
	if d.root.kind != mapping || d.root.flow || d.crlf || d.mark != "" {
		return nil
	}
	s := splicer{Document: d}
	for _, section := range d.root.entries {
		all = append(all, s.lineOf(section.start))
		v := section.value
		if v.kind != mapping || v.flow || s.lineOf(v.start) == s.lineOf(section.start) {
			continue
		}
		for _, e := range v.entries {
			all = append(all, s.lineOf(e.start))
		}
	}
	return all
}
