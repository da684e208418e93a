package structure

import "go/token"

// graph finds strongly connected components (Tarjan 1972).
type graph struct {
	edges map[*token.File][]*token.File

	number, low map[*token.File]int
	stack       []*token.File
	waiting     map[*token.File]bool // on the stack
	found       [][]*token.File
}

// cycles are the components of at least two files.
func (g *graph) cycles() [][]*token.File {
	g.number, g.low, g.waiting = map[*token.File]int{}, map[*token.File]int{}, map[*token.File]bool{}
	for f := range g.edges {
		if g.number[f] == 0 {
			g.visit(f)
		}
	}
	return g.found
}

func (g *graph) visit(f *token.File) {
	g.number[f] = len(g.number) + 1
	g.low[f] = g.number[f]
	at := len(g.stack)
	g.stack, g.waiting[f] = append(g.stack, f), true
	for _, to := range g.edges[f] {
		if g.number[to] == 0 {
			g.visit(to)
			g.low[f] = min(g.low[f], g.low[to])
		} else if g.waiting[to] {
			g.low[f] = min(g.low[f], g.number[to])
		}
	}
	if g.low[f] < g.number[f] {
		return
	}
	component := append([]*token.File(nil), g.stack[at:]...)
	for _, member := range component {
		delete(g.waiting, member)
	}
	g.stack = g.stack[:at]
	if len(component) > 1 {
		g.found = append(g.found, component)
	}
}
