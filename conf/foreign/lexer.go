package foreign

import (
	"fmt"
	"strings"
)

// token is a word, or a mark: {, } or the end of a line.
type token struct {
	text string
	mark byte // 0: a word
	line int
	bare bool // a word without quotes
}

const lineEnd = '\n'

// lex divides a text into words, in double quotes or not, braces and ends of lines. A
// hash sign begins a comment; a backslash takes the meaning of what follows it.
func lex(text string) (tokens []token, err error) {
	line := 1
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '\n':
			tokens = append(tokens, token{mark: lineEnd, line: line})
			line++
			at++
		case c == ' ' || c == '\t' || c == '\r' || c == ';' || c == ',':
			at++
		case c == '#':
			at += strings.IndexByte(text[at:]+"\n", '\n')
		case c == '{' || c == '}':
			tokens = append(tokens, token{mark: c, line: line})
			at++
		default:
			word, end, ok := lexWord(text, at)
			if !ok {
				return nil, fmt.Errorf("line %d: found a quotation mark without its end", line)
			}
			tokens = append(tokens, token{text: word, line: line, bare: c != '"'})
			line += strings.Count(text[at:end], "\n")
			at = end
		}
		if len(tokens) > 4*maxItems {
			return nil, errMany
		}
	}
	return append(tokens, token{mark: lineEnd, line: line}), nil
}

// lexWord reads a word that begins at a place, and says where it ends.
func lexWord(text string, at int) (word string, end int, ok bool) {
	var b strings.Builder
	quoted := text[at] == '"'
	if quoted {
		at++
	}
	for ; at < len(text); at++ {
		c := text[at]
		switch {
		case c == '\\' && at+1 < len(text) && text[at+1] != '\n':
			at++
			c = text[at]
		case quoted && c == '"':
			return b.String(), at + 1, true
		case !quoted && strings.IndexByte(" \t\r\n{};,#", c) >= 0:
			return b.String(), at, true
		}
		if c != 0 {
			b.WriteByte(c)
		}
	}
	return b.String(), at, !quoted
}

// blocks makes items of tokens: a key, its words, and what braces behind them hold.
// ends reports whether a token ends the item whose key and words came before it.
func blocks(tokens []token, ends func(of *item, t token) bool) (*item, error) {
	open := []*item{{used: true}}
	var last *item // that may get more words, or a brace
	items := 0
	for _, t := range tokens {
		above := open[len(open)-1]
		switch {
		case t.mark == '{' && last == nil:
			return nil, fmt.Errorf("line %d: found { without anything in front of it", t.line)
		case t.mark == '{':
			if open = append(open, last); len(open) > maxDepth {
				return nil, errDepth
			}
			last = nil
		case t.mark == '}' && len(open) == 1:
			return nil, fmt.Errorf("line %d: found } without {", t.line)
		case t.mark == '}':
			open, last = open[:len(open)-1], nil
		case last == nil && t.mark == lineEnd:
		case last != nil && ends(last, t):
			if last = nil; t.mark == lineEnd {
				continue
			}
			fallthrough
		case last == nil:
			if items++; items > maxItems {
				return nil, errMany
			}
			last = &item{key: t.text, place: fmt.Sprintf("line %d", t.line)}
			above.kids = append(above.kids, last)
		case t.mark == lineEnd:
		default:
			last.args = append(last.args, t.text)
		}
	}
	if len(open) > 1 {
		return nil, fmt.Errorf("found no } for %s of %s, expected one", shownKey(open[len(open)-1].key), open[len(open)-1].place)
	}
	return open[0], nil
}
