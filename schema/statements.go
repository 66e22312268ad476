package schema

import "strings"

// statements splits a migration at the semicolons that end its statements, ignoring semicolons in
// quotes, in comments, or between CREATE TRIGGER and its END. Statements are run one by one, so
// that an error tells which one failed.
func statements(text string) []string {
	var list []string
	var words []string // the bare words of the statement so far, in upper case
	start := 0
	for i := 0; i < len(text); {
		next := skipToken(text, i)
		token := text[i:next]
		i = next
		if isWord(token[0]) {
			words = append(words, strings.ToUpper(token))
		}
		if token != ";" || inTrigger(words) {
			continue
		}
		if len(words) > 0 {
			list = append(list, strings.TrimSpace(text[start:i]))
		}
		start, words = i, nil
	}
	if len(words) > 0 {
		list = append(list, strings.TrimSpace(text[start:]))
	}
	return list
}

// inTrigger reports whether the words begin a trigger whose BEGIN has not met its END.
func inTrigger(words []string) bool {
	if len(words) < 3 || words[0] != "CREATE" || words[1] != "TRIGGER" && words[2] != "TRIGGER" {
		return false
	}
	begun, open := false, 0
	for _, w := range words {
		switch w {
		case "BEGIN":
			begun, open = true, open+1
		case "CASE":
			open++
		case "END":
			open--
		}
	}
	return !begun || open > 0
}

// skipToken returns the end of the comment, quoted text, word or single character that
// begins at i.
func skipToken(text string, i int) int {
	rest := text[i:]
	switch c := text[i]; {
	case strings.HasPrefix(rest, "--"):
		return i + lengthTo(rest, 2, "\n")
	case strings.HasPrefix(rest, "/*"):
		return i + lengthTo(rest, 2, "*/")
	case c == '\'' || c == '"' || c == '`':
		return i + lengthTo(rest, 1, string(c))
	case isWord(c):
		n := 1
		for n < len(rest) && isWord(rest[n]) {
			n++
		}
		return i + n
	}
	return i + 1
}

// lengthTo is the length of text up to and with the first end at or after from, or all.
func lengthTo(text string, from int, end string) int {
	n := strings.Index(text[from:], end)
	if n < 0 {
		return len(text)
	}
	return from + n + len(end)
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}
