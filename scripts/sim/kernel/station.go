package kernel

// Station serves one job at a time, in order of arrival.
type Station struct {
	kernel *Kernel
	free   int64 // when all that was accepted has been served
}

// NewStation returns an idle station.
func NewStation(k *Kernel) *Station { return &Station{kernel: k} }

// Serve plans that done is called when a job of ns has been served.
func (s *Station) Serve(ns int64, done Call) {
	s.free = max(s.free, s.kernel.now) + ns
	s.kernel.At(s.free, Completion, done, 0)
}
