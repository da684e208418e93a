package qtcp

// Class is the class of a flow. Urgent traffic has none: nothing governs it.
type Class uint8

// The classes.
const (
	High Class = iota
	Medium
	Low
	Classes // how many there are
)

// Ratios are what the classes get of the bottleneck, as a ratio. The thesis has 3:2:1.
type Ratios [Classes]float64

// DefaultRatios is 3:2:1.
var DefaultRatios = Ratios{High: 3, Medium: 2, Low: 1}

// The interference rule.
const (
	// EstimateEvery is how many round trips lie between two calls of Device.Observe.
	EstimateEvery = 8

	beta  = 0.05 // β: a difference up to this is none; the step of a correction
	floor = 0.1  // of the link: the lowest estimate
)

// Device is a network device with the bottleneck that its flows share. NewDevice makes one.
type Device struct {
	link     float64
	estimate float64 // B_est
	ratios   Ratios
	flows    [Classes]int
}

// NewDevice returns a device without flows whose bottleneck has the rate link. The rate is
// also the highest estimate.
func NewDevice(link float64, ratios Ratios) Device {
	return Device{link: link, estimate: link, ratios: ratios}
}

// Join counts a flow of a class.
func (d *Device) Join(c Class) { d.flows[c]++ }

// Leave ends what Join began.
func (d *Device) Leave(c Class) { d.flows[c]-- }

// Flows is how many flows a class has.
func (d *Device) Flows(c Class) int { return d.flows[c] }

// Estimate is B_est: what the bottleneck has for the flows of this device.
func (d *Device) Estimate() float64 { return d.estimate }

// Target is the rate that each flow of a class should get: the class's part of the
// estimate among the classes that have flows, divided by its flows. A class without flows
// has what its first flow would get.
func (d *Device) Target(c Class) float64 { return d.estimate * d.Share(c) }

// Share is the part of the bottleneck that Target is of.
func (d *Device) Share(c Class) float64 {
	sum := 0.0
	for i, r := range d.ratios {
		if d.flows[i] > 0 || Class(i) == c {
			sum += r
		}
	}
	return d.ratios[c] / sum / float64(max(1, d.flows[c]))
}

// Weight is how much a flow of a class should get beside what each would get if there were no
// classes: 1 on the mean of the flows.
func (d *Device) Weight(c Class) float64 {
	flows := 0
	for i, n := range d.flows {
		flows += n
		if n == 0 && Class(i) == c {
			flows++ // it would be the first
		}
	}
	return d.Share(c) * float64(flows)
}

// Observe corrects the estimate by the sum of what all flows of the device measured. It is
// called every EstimateEvery round trips. While a flow is in slow start it does nothing:
// flows that still grow do not show what the bottleneck has. One estimate serves all flows:
// with one for each, flows that measure little believe in others' traffic, and the shares
// are lost.
func (d *Device) Observe(measured float64, slowStart bool) {
	if slowStart || measured <= 0 {
		return
	}
	switch q := d.estimate / measured; {
	case q-1 > beta:
		d.estimate *= 1 - beta
	case q-1 < -beta:
		d.estimate *= 1 + beta
	}
	d.estimate = max(floor*d.link, min(d.link, d.estimate))
}
