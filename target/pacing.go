package target

// pacing bounds what writes of a connection were asked for.
type pacing struct{}

// Pacing is how that is bounded now.
type Pacing struct {
	Window int64 // bytes that may be asked for; 0: any
}

func (p *pacing) follow(NetworkClass) {}

func (p *pacing) told() Pacing { return Pacing{} }
