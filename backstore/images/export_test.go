package images

// Kill closes what the process had open of something half-made, as its end does.
func Kill(half any) {
	switch h := half.(type) {
	case *draft:
		h.made.Close()
	case *clone:
		h.made.Close()
	case *restoration:
		h.made.Close()
	case *following:
		h.made.Close()
		h.second.made.Close()
	}
}
