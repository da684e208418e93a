package qtcp

// smooth is γ: what the last measurement counts in m.
const smooth = 0.5

// Mean is m: measurements of a flow, smoothed. QRDMA's flows have the same.
type Mean struct {
	measured float64 // 0 is none yet
}

// Measured is m, 0 before the first measurement.
func (m *Mean) Measured() float64 { return m.measured }

// Measure takes a measurement into m: the rate of the last round trip or interval, or the
// latency of what it finished.
func (m *Mean) Measure(x float64) {
	if m.measured == 0 {
		m.measured = x
		return
	}
	m.measured = (1-smooth)*m.measured + smooth*x
}

// Quality is Q of a flow that should get the rate target: that of a flow outside of the
// scheme, 1, before the first measurement.
func (m *Mean) Quality(target float64) float64 {
	if m.measured == 0 {
		return DCTCP
	}
	return target / m.measured
}
