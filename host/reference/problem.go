package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"regedge/handler"
)

// problemPage is what the page of a code is shown with.
type problemPage struct {
	handler.Problem
	Advice  advice
	Request string // the first lines of a call that gets this answer
	Example string // the answer's body
}

func (s *Site) problem(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	described, ok := handler.FindProblem(params.ByName("code"))
	if !ok {
		s.missing(w, r)
		return
	}
	example, err := exampleOf(s.base(r), described)
	if err != nil {
		http.Error(w, "this page cannot be shown", http.StatusInternalServerError)
		return
	}
	advice := advices[described.Code]
	s.show(w, r, http.StatusOK, "problem", page{
		Title: described.Title, Section: "guides",
		Data: problemPage{
			Problem: described, Advice: advice, Example: example,
			Request: requestOf(described.Code, advice.Call),
		},
	})
}

// exampleRequestID is the request id of the examples.
const exampleRequestID = "01KADN4XQ0V8R5T2M7C3B9HZ6E"

// exampleOf is the body of an answer with this code, laid out for reading.
func exampleOf(base string, p handler.Problem) (string, error) {
	response := handler.NewProblem(base, p.Code, exampleRequestID, 0)
	var b bytes.Buffer
	if err := json.Indent(&b, response.Body, "", "  "); err != nil {
		return "", err
	}
	return b.String(), nil
}

// requestOf writes the call of an example as it goes over the wire.
func requestOf(code, path string) string {
	method, authorization := http.MethodGet, "Authorization: Bearer <API_KEY>\n"
	switch code {
	case handler.MethodNotAllowed:
		method = http.MethodPost
	case handler.MissingAPIKey:
		authorization = ""
	case handler.InvalidAPIKey:
		authorization = "Authorization: Bearer reg_live_…\n"
	}
	return fmt.Sprintf("%s %s HTTP/1.1\n%s", method, path, authorization)
}
