package handler

import (
	"strings"

	"regedge/handler/charge"
	"regedge/handler/fastbytes"
)

// route is a matched endpoint and its path parameter, still percent-encoded.
type route struct {
	endpoint charge.Endpoint
	param    string
}

// matchRoute finds the endpoint of a path (docs/contract.md, "Endpoints").
func matchRoute(path string) (route, bool) {
	rest, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return route{}, false
	}
	switch rest {
	case "search/companies":
		return route{endpoint: charge.SearchCompanies}, true
	case "search/llps":
		return route{endpoint: charge.SearchLLPs}, true
	}
	collection, param, _ := strings.Cut(rest, "/")
	if param == "" || strings.IndexByte(param, '/') >= 0 {
		return route{}, false
	}
	switch collection {
	case "companies":
		return route{charge.Companies, param}, true
	case "directors":
		return route{charge.Directors, param}, true
	case "llps":
		return route{charge.LLPs, param}, true
	}
	return route{}, false
}

// meantRoute guesses which endpoint a path without one was meant for: the path may be in another case or version, in
// the singular, end in a slash, or have a part too many or too few. It returns "" if it finds none.
func meantRoute(path, query string) string {
	var collection string
	var search, named bool // named: an identifier follows the collection
	for path != "" {
		var part string
		part, path, _ = strings.Cut(path, "/")
		upper := fastbytes.Upper(part)
		switch {
		case upper == "SEARCH":
			search = true
		case collection != "":
			named = named || part != ""
		case upper == "COMPANY" || upper == "COMPANIES":
			collection = "companies"
		case upper == "DIRECTOR" || upper == "DIRECTORS":
			collection = "directors"
		case upper == "LLP" || upper == "LLPS":
			collection = "llps"
		}
	}
	switch {
	case collection == "directors": // there is no search for directors
		return "/v1/directors/{din}"
	case collection == "llps" && search:
		return "/v1/search/llps?llpin={llpin}"
	case collection == "llps":
		return "/v1/llps/{llpin}"
	case search, collection != "" && !named && strings.Contains(query, "name="):
		return "/v1/search/companies?name={name}"
	case collection != "":
		return "/v1/companies/{cin}"
	}
	return ""
}

// noRoute is the refusal of a path without an endpoint.
func (c *call) noRoute() problem {
	meant := meantRoute(c.path, c.query)
	if meant == "" {
		return problem{code: RouteNotFound}
	}
	return problem{RouteNotFound, "There is nothing at this path. Perhaps " + meant + " is meant. See the reference for the five endpoints under /v1.", 0}
}

func splitTarget(target string) (path, query string) {
	path, query, _ = strings.Cut(target, "?")
	return path, query
}

// param returns the decoded path parameter. An invalid percent-encoding stays as it is: no
// identifier has a percent sign, so it is refused like any other invalid one. net/http, and so
// this service's host, refuses such a request before the handler sees it; other hosts do not.
func (c *call) param() string {
	if decoded, ok := unescape(c.route.param, false); ok {
		return decoded
	}
	return c.route.param
}

// queryParam returns the value of a query parameter and how often it occurs. ok is false if one
// of its values cannot be decoded. A parameter whose name cannot be decoded is ignored.
func (c *call) queryParam(name string) (value string, times int, ok bool) {
	ok = true
	for rest := c.query; rest != ""; {
		var field string
		field, rest, _ = strings.Cut(rest, "&")
		key, encoded, _ := strings.Cut(field, "=")
		if key, valid := unescape(key, true); !valid || key != name {
			continue
		}
		decoded, valid := unescape(encoded, true)
		value, times, ok = decoded, times+1, ok && valid
	}
	return value, times, ok
}

// unescape decodes percent-encoding (RFC 3986, section 2.1) and, in a query, the plus sign for a
// space. It reports false if an escape is incomplete.
func unescape(s string, query bool) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && (!query || strings.IndexByte(s, '+') < 0) {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%':
			if i+2 >= len(s) {
				return "", false
			}
			high, low := unhex(s[i+1]), unhex(s[i+2])
			if high > 15 || low > 15 {
				return "", false
			}
			b = append(b, high<<4|low)
			i += 2
		case s[i] == '+' && query:
			b = append(b, ' ')
		default:
			b = append(b, s[i])
		}
	}
	return string(b), true
}

// unhex returns the value of a hexadecimal digit, 255 for any other byte.
func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
