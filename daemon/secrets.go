package daemon

import (
	"maps"
	"regexp"
	"slices"

	"lunar/conf"
	"lunar/conf/edit"
)

// secretNoted is what stands behind a secret's key in a comment.
var secretNoted = regexp.MustCompile(`(?i)((?:secret|password)["']?\s*[:=]\s*)\S.*`)

// withoutSecret is what is told of a comment.
func withoutSecret(comment string) string {
	return secretNoted.ReplaceAllString(comment, "${1}"+conf.Withheld)
}

// withSecrets gives users of an auth group, or one of them, the secrets that they have,
// where none is given. old is what there was at the path.
func withSecrets(path []string, given edit.Object, old any) any {
	was, _ := old.(edit.Object)
	switch {
	case path[0] != "auth-groups":
		return given
	case len(path) == 4:
		return kept(given, was)
	}
	out := maps.Clone(given)
	if mutual, ok := given["mutual"].(edit.Object); ok {
		before, _ := was["mutual"].(edit.Object)
		out["mutual"] = kept(mutual, before)
	}
	users, ok := given["chap"].([]any)
	if !ok {
		return out
	}
	before, _ := was["chap"].([]any)
	users = slices.Clone(users)
	for i, u := range users {
		user, ok := u.(edit.Object)
		if !ok {
			continue
		}
		for _, b := range before {
			if had, ok := b.(edit.Object); ok && had["user"] == user["user"] {
				users[i] = kept(user, had)
			}
		}
	}
	out["chap"] = users
	return out
}

// kept is a user with the secret of before, if he has none.
func kept(user, before edit.Object) edit.Object {
	_, file := user["secret-file"]
	secret, given := user["secret"]
	if file || given && secret != conf.Withheld {
		return user
	}
	out := maps.Clone(user)
	for _, key := range []string{"secret", "secret-file"} {
		delete(out, key)
		if had, ok := before[key]; ok {
			out[key] = had
		}
	}
	return out
}
