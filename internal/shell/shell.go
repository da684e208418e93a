package shell

import "strings"

// CommandLine is a command line for a shell, of words.
func CommandLine(words ...string) string {
	var line []string
	for _, w := range words {
		line = append(line, quoted(w))
	}
	return strings.Join(line, " ")
}

// Flags are words of a command line: pairs of a flag and its value, without those that
// have none.
func Flags(pairs ...[2]string) (words []string) {
	for _, p := range pairs {
		if p[1] != "" {
			words = append(words, p[:]...)
		}
	}
	return words
}

// quoted is a word for a shell.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,@%+=") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
