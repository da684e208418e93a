package conf

import (
	"fmt"

	"github.com/goccy/go-yaml/token"
)

// maxDepth is how many lists and mappings a text may have within each other, several
// times what any key needs. The parser's time and memory grow with the square of it.
const maxDepth = 32

// tooDeep is the error of a text with more.
type tooDeep struct{ at *token.Token }

func (e tooDeep) Error() string { return fmt.Sprintf("more than %d levels", maxDepth) }

// checkDepth looks at the tokens alone, of which the lexer makes a list in linear time.
func checkDepth(tokens token.Tokens) error {
	var open []int // columns of the block lists and mappings around a token
	flow := 0      // lists and mappings in brackets
	for i, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(flow-1, 0)
		}
		if flow == 0 {
			open = opened(open, tokens[:i+1])
		}
		if flow+len(open) > maxDepth {
			return tooDeep{t}
		}
	}
	return nil
}

// opened is what is open behind the last token: an entry of a list, a complex key, or
// the colon behind a key begins one where there is none in its column.
func opened(open []int, tokens token.Tokens) []int {
	last := len(tokens) - 1
	begins := tokens[last]
	switch begins.Type {
	case token.SequenceEntryType, token.MappingKeyType:
	case token.MappingValueType:
		if last > 0 {
			begins = tokens[last-1]
		}
	default:
		return open
	}
	column := begins.Position.Column
	for len(open) > 0 && open[len(open)-1] > column {
		open = open[:len(open)-1]
	}
	if len(open) == 0 || open[len(open)-1] < column {
		open = append(open, column)
	}
	return open
}
