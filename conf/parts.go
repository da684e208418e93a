package conf

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The YAML parser takes a time that grows with the square of the entries of a
// mapping in block style, because it copies all that follow for each. A long text
// is therefore parsed in parts: each top-level key by itself, and its entries in
// groups, under the same key.

// partEntries is how many entries of a section are parsed together.
const partEntries = 256

// parseYAML returns the documents of a text that are not empty. What cannot be
// taken apart is parsed as a whole, and so is what has errors, which are then those
// of the whole.
func parseYAML(data []byte, partEntries int) (bodies []ast.Node, err error) {
	if root, ok := parseParts(lexer.Tokenize(string(data)), partEntries); ok {
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
	tokens = slices.DeleteFunc(tokens, func(t *token.Token) bool { return t.Type == token.CommentType })
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

// parseSection parses one top-level key and what is below it.
func parseSection(tokens token.Tokens, partEntries int) (section *ast.MappingValueNode, ok bool) {
	entries := bodyOf(tokens)
	if len(entries) <= partEntries {
		return parsePair(tokens)
	}
	var all []*ast.MappingValueNode
	for group := range slices.Chunk(entries, partEntries) {
		part := slices.Concat(token.Tokens{tokens[0].Clone(), tokens[1].Clone()}, slices.Concat(group...))
		if section, ok = parsePair(part); !ok {
			return nil, false
		}
		body, isMapping := section.Value.(*ast.MappingNode)
		if !isMapping {
			return nil, false
		}
		all = append(all, body.Values...)
		body.Values = all
	}
	return section, true
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

// bodyOf are the entries of a section in block style, nil for another one.
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
		if t.Position.Column < column || i+1 == len(tokens) || tokens[i+1].Type != token.MappingValueType {
			return nil, false
		}
		if i > start {
			entries, start = append(entries, tokens[start:i]), i
		}
	}
	return append(entries, tokens[start:]), len(tokens) > 0
}
