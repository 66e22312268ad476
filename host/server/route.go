package server

import "strings"

// route is what a path asks for, without what it asks about.
type route uint8

const (
	routeOther route = iota
	routePage
	routeCompanies
	routeDirectors
	routeLLPs
	routeSearchCompanies
	routeSearchLLPs
	routeCount
)

var routeNames = [routeCount]string{
	routeOther: "other", routePage: "page",
	routeCompanies: "/v1/companies/{cin}", routeDirectors: "/v1/directors/{din}",
	routeLLPs: "/v1/llps/{llpin}", routeSearchCompanies: "/v1/search/companies",
	routeSearchLLPs: "/v1/search/llps",
}

func (r route) String() string { return routeNames[r] }

// routeOf names the route of a target for log and metrics. It decides nothing: the
// Answerer routes for itself.
func routeOf(target string) route {
	rest, ok := strings.CutPrefix(target, "/v1/")
	if !ok {
		return routeOther
	}
	rest, _, _ = strings.Cut(rest, "?")
	head, tail, _ := strings.Cut(rest, "/")
	switch head {
	case "companies":
		return routeCompanies
	case "directors":
		return routeDirectors
	case "llps":
		return routeLLPs
	case "search":
		switch tail {
		case "companies":
			return routeSearchCompanies
		case "llps":
			return routeSearchLLPs
		}
	}
	return routeOther
}
