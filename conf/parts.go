package conf

import (
	"bytes"
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The YAML parser takes a time that grows with the square of the entries of a
// mapping in block style, because it copies all that follow for each. A long text
// is therefore parsed in parts: each top-level key by itself, and of every mapping
// below it so many entries at a time, under the same keys.

// partEntries is how many entries of a mapping are parsed together.
const partEntries = 256

// parseYAML returns the documents of a text that are not empty. What cannot be
// taken apart is parsed as a whole, and so is what has errors, which are then those
// of the whole.
func parseYAML(data []byte, partEntries int) (bodies []ast.Node, err error) {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the lexer counts two lines for each behind a comment
	tokens := lexer.Tokenize(string(data))
	if err := checkDepth(tokens); err != nil {
		return nil, err
	}
	if root, ok := parseParts(tokens, partEntries); ok {
		return []ast.Node{root}, nil
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, err
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	return bodies, nil
}

// parseParts is false for a text that is short, has errors or cannot be taken apart.
func parseParts(tokens token.Tokens, partEntries int) (*ast.MappingNode, bool) {
	tokens = withoutComments(tokens)
	if len(tokens) < partEntries {
		return nil, false
	}
	sections, ok := entriesAt(tokens, 1)
	if !ok {
		return nil, false
	}
	root := ast.Mapping(tokens[0], false)
	for _, section := range sections {
		pair, ok := parseSection(section, partEntries)
		if !ok {
			return nil, false
		}
		root.Values = append(root.Values, pair)
	}
	return root, true
}

func withoutComments(tokens token.Tokens) token.Tokens {
	return slices.DeleteFunc(tokens, func(t *token.Token) bool { return t.Type == token.CommentType })
}

// parseSection parses one top-level key and what is below it.
func parseSection(tokens token.Tokens, partEntries int) (section *ast.MappingValueNode, ok bool) {
	var all []*ast.MappingValueNode
	for _, part := range divided(tokens, partEntries) {
		pair, ok := parsePair(part)
		if !ok {
			return nil, false
		}
		if all, ok = joined(all, []*ast.MappingValueNode{pair}); !ok {
			return nil, false
		}
	}
	return all[0], true
}

// divided cuts a key and what is below it into parts with the same key, and with no
// more than partEntries entries of any mapping below it.
func divided(tokens token.Tokens, partEntries int) (parts []token.Tokens) {
	var group []token.Tokens
	add := func(body ...token.Tokens) {
		part := slices.Concat(body...)
		parts = append(parts, append(token.Tokens{tokens[0].Clone(), tokens[1].Clone()}, part...))
	}
	flush := func() {
		if len(group) > 0 {
			add(group...)
		}
		group = nil
	}
	for _, entry := range bodyOf(tokens) {
		inner := divided(entry, partEntries)
		if len(inner) == 1 {
			if group = append(group, entry); len(group) == partEntries {
				flush()
			}
			continue
		}
		flush()
		for _, part := range inner {
			add(part)
		}
	}
	flush()
	if len(parts) <= 1 {
		return []token.Tokens{tokens}
	}
	return parts
}

// joined appends the entries of a part to those before. An entry that was cut goes on
// in the first one of the next part, whose key is the same token.
func joined(all, more []*ast.MappingValueNode) ([]*ast.MappingValueNode, bool) {
	if len(all) == 0 || *all[len(all)-1].Key.GetToken().Position != *more[0].Key.GetToken().Position {
		return append(all, more...), true
	}
	head, ok1 := all[len(all)-1].Value.(*ast.MappingNode)
	tail, ok2 := more[0].Value.(*ast.MappingNode)
	if !ok1 || !ok2 {
		return nil, false
	}
	values, ok := joined(head.Values, tail.Values)
	head.Values = values
	return append(all, more[1:]...), ok
}

// parsePair parses a text that has to be a mapping with one key.
func parsePair(tokens token.Tokens) (*ast.MappingValueNode, bool) {
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil || len(file.Docs) != 1 {
		return nil, false
	}
	root, ok := file.Docs[0].Body.(*ast.MappingNode)
	if !ok || len(root.Values) != 1 {
		return nil, false
	}
	return root.Values[0], true
}

// bodyOf are the entries of a mapping in block style below a key, nil for another one.
func bodyOf(tokens token.Tokens) []token.Tokens {
	if len(tokens) < 3 || tokens[2].Position.Line == tokens[0].Position.Line {
		return nil
	}
	entries, _ := entriesAt(tokens[2:], tokens[2].Position.Column)
	return entries
}

// entriesAt cuts the tokens of a mapping in block style into those of its entries,
// whose keys are in a column. It is false for what is none, or has anything that
// concerns more than one entry.
func entriesAt(tokens token.Tokens, column int) (entries []token.Tokens, ok bool) {
	start, depth := 0, 0
	for i, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.DocumentHeaderType, token.DocumentEndType, token.DirectiveType, token.InvalidType,
			token.AnchorType, token.AliasType, token.TagType, token.MergeKeyType, token.MappingKeyType:
			return nil, false
		}
		begins := i == 0 || t.Position.Line > tokens[i-1].Position.Line
		if depth != 0 || !begins || t.Position.Column > column {
			continue
		}
		if t.Type == token.SequenceEntryType && t.Position.Column == column && i > 0 {
			continue // of a list that is not indented below its key
		}
		if t.Position.Column < column || i+1 == len(tokens) || tokens[i+1].Type != token.MappingValueType {
			return nil, false
		}
		if i > start {
			entries, start = append(entries, tokens[start:i]), i
		}
	}
	return append(entries, tokens[start:]), len(tokens) > 0
}
