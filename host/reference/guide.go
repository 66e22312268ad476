package reference

import (
	"net/http"

	"github.com/julienschmidt/httprouter"

	"regedge/handler"
)

// guide is a text on one subject. Its body is guides/NAME.html.
type guide struct {
	Name    string
	Title   string
	Summary string
}

func (g guide) page() string { return "guide:" + g.Name }

// guides are in the order in which a newcomer reads them.
var guides = []guide{
	{"first-call", "First call in a minute", "From nothing to a company as JSON, without an account."},
	{"authentication", "Authentication", "Keys, where they go, and how to keep and replace them."},
	{"credits-and-limits", "Credits and limits", "What is charged and what is not, every limit, every header."},
	{"errors", "Errors and retries", "All codes, which to retry, and for how long."},
	{"search", "Search", "How names match, and in which order they come."},
	{"sandbox", "Sandbox", "What the public key can do, and what it hides."},
	{"changelog", "Changelog", "What each version brought."},
}

// guidePage is what a guide is shown with.
type guidePage struct {
	guide
	Previous, Next *guide
	Problems       []handler.Problem
}

func (s *Site) guide(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	for i, g := range guides {
		if g.Name != params.ByName("name") {
			continue
		}
		data := guidePage{guide: g, Problems: handler.Problems()}
		if i > 0 {
			data.Previous = &guides[i-1]
		}
		if i+1 < len(guides) {
			data.Next = &guides[i+1]
		}
		s.show(w, r, http.StatusOK, g.page(), page{Title: g.Title, Section: "guides", Data: data})
		return
	}
	s.missing(w, r)
}
