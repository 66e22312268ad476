package server

import (
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"

	"regedge/handler"
)

// judge checks a request's header, as HTTP/2 sends it, for anything that net/http would refuse. It returns
// the code of the refusal, or else the index of a target that net/http could not parse; -1 if it can.
// tooLarge means that fields are missing.
func judge(fields []hpack.HeaderField, tooLarge bool) (code string, target int) {
	regular := slices.IndexFunc(fields, func(f hpack.HeaderField) bool { return !f.IsPseudo() })
	if regular < 0 {
		regular = len(fields)
	}
	pseudo := fields[:regular]
	switch {
	case !areRegular(fields[regular:]):
		return handler.InvalidRequest, -1
	case tooLarge:
		return handler.HeaderTooLarge, -1
	}
	path, ok := parsePseudo(pseudo)
	if !ok {
		return handler.InvalidRequest, -1
	}
	if path < 0 { // CONNECT
		return "", -1
	}
	if !isTarget(pseudo[path].Value) {
		return handler.InvalidRequest, -1
	}
	if _, err := url.ParseRequestURI(pseudo[path].Value); err != nil {
		return "", path
	}
	return "", -1
}

// areRegular checks fields that are no pseudo-header fields (RFC 9113, section 8.2).
func areRegular(fields []hpack.HeaderField) bool {
	length := ""
	for i, f := range fields {
		if !httpguts.ValidHeaderFieldName(f.Name) || strings.ToLower(f.Name) != f.Name || !httpguts.ValidHeaderFieldValue(f.Value) {
			return false
		}
		switch f.Name {
		case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
			return false
		case "te":
			if f.Value != "trailers" || slices.ContainsFunc(fields[:i], func(o hpack.HeaderField) bool { return o.Name == "te" }) {
				return false
			}
		case "content-length":
			if f.Value == "" || strings.Trim(f.Value, "0123456789") != "" || length != "" && f.Value != length {
				return false
			}
			length = f.Value
		}
	}
	return true
}

// parsePseudo checks the pseudo-header fields (RFC 9113, section 8.3.1), and returns the index of the
// path: -1 for CONNECT (section 8.5).
func parsePseudo(fields []hpack.HeaderField) (path int, ok bool) {
	at := map[string]int{}
	for i, f := range fields {
		if _, twice := at[f.Name]; twice || !httpguts.ValidHeaderFieldValue(f.Value) {
			return -1, false
		}
		switch f.Name {
		case ":method", ":scheme", ":authority", ":path":
			at[f.Name] = i
		default:
			return -1, false
		}
	}
	value := func(name string) string {
		if i, found := at[name]; found {
			return fields[i].Value
		}
		return ""
	}
	if value(":method") == http.MethodConnect {
		return -1, len(fields) == 2 && value(":authority") != ""
	}
	scheme := value(":scheme")
	if value(":path") == "*" && value(":method") != http.MethodOptions {
		return -1, false // RFC 9113, section 8.3.1
	}
	if value(":method") == "" || value(":path") == "" || scheme != "https" && scheme != "http" || strings.Contains(value(":authority"), "@") {
		return -1, false
	}
	return at[":path"], true
}

// isTarget reports whether HTTP/1.1 would pass a target on: it has broken escapes at most.
func isTarget(target string) bool {
	return (target == "*" || strings.HasPrefix(target, "/") || isAbsolute(target)) && !namesTwoHosts(target) &&
		!strings.ContainsFunc(target, func(c rune) bool { return c <= ' ' || c == 0x7f })
}

// namesTwoHosts reports whether a target such as //a:b://c may be a path or name a host in two ways. Parsers differ in
// which of these they refuse, so all are.
func namesTwoHosts(target string) bool {
	return strings.HasPrefix(target, "//") && strings.Contains(target, "://")
}

// isAbsolute checks a target that is a URL, up to its path.
func isAbsolute(target string) bool {
	scheme, rest, found := strings.Cut(target, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return found && isScheme(scheme) && (rest == "" || isHost(rest))
}

// isScheme checks a URL's scheme (RFC 3986, section 3.1).
func isScheme(text string) bool {
	for i, c := range []byte(text) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", rune(c))) {
			return false
		}
	}
	return text != ""
}

// isHost checks the value of Host, or :authority (RFC 3986, section 3.2): a name or an address, and a port.
// Bytes that are not ASCII are let through, escapes and zones are not.
func isHost(text string) bool {
	port := ""
	if i := strings.LastIndexByte(text, ':'); i >= 0 && !strings.HasSuffix(text, "]") {
		text, port = text[:i], text[i+1:]
	}
	if strings.Trim(port, "0123456789") != "" {
		return false
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		addr, err := netip.ParseAddr(inner)
		return ok && err == nil && addr.Is6() && addr.Zone() == ""
	}
	for _, c := range []byte(text) {
		if !('a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c >= 0x80 || strings.IndexByte("-._~!$&'()*+,;=", c) >= 0) {
			return false
		}
	}
	return text != ""
}
