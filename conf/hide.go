package conf

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// publicKeys are the keys below auth-groups whose values may be quoted. The
// values of all others, known or not, are taken for secrets, so that a
// misspelt "secret" does not show one.
var publicKeys = map[string]bool{
	"user": true, "secret-file": true, "algorithms": true, "initiators": true, "networks": true,
	"auth-group": true, "auth": true,
}

// hideSecrets finds the secrets below n before anything of the file is quoted.
// key is the nearest key above n, private whether it is below auth-groups.
func hideSecrets(src *source, n ast.Node, key string, private bool) {
	switch v := n.(type) {
	case ast.MapNode:
		for it := v.MapRange(); it.Next(); {
			k, _ := node{ast: it.Key()}.scalar()
			hideSecrets(src, it.Value(), k, private || holdsSecrets(k))
		}
	case *ast.SequenceNode:
		for _, e := range v.Values {
			hideSecrets(src, e, key, private)
		}
	case *ast.TagNode:
		hideSecrets(src, v.Value, key, private)
	case *ast.AnchorNode:
		hideSecrets(src, v.Value, key, private)
	default:
		if !publicKeys[key] && (private || looksSecret(key)) {
			hideScalar(src, n)
		}
	}
}

// holdsSecrets reports whether key is, or nearly is, one that has secrets
// below it.
func holdsSecrets(key string) bool {
	_, ok := nearest(key, []string{"auth-groups", "chap", "mutual"})
	return ok && !publicKeys[key]
}

func looksSecret(key string) bool {
	_, ok := nearest(key, []string{"secret"})
	return ok || strings.Contains(strings.ToLower(key), "secr")
}

// hideScalar hides a value in every spelling that a message could quote.
func hideScalar(src *source, n ast.Node) {
	text, ok := node{ast: n}.scalar()
	if !ok || (node{ast: n}).missing() {
		return
	}
	first := n.GetToken().Position.Line
	last := first + strings.Count(n.GetToken().Origin, "\n")
	if block, ok := n.(*ast.LiteralNode); ok {
		last = first + 1 + strings.Count(block.Value.GetToken().Origin, "\n")
	}
	src.hide(first, last, text)
	src.hide(first, last, n.GetToken().Origin)
	src.hide(first, last, strings.Trim(strconv.Quote(text), `"`))
}
