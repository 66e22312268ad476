package server

import (
	"encoding/json"
	"net/http"

	"regedge/handler"
)

// overloadedRetrySeconds is how long a client should stay away from a server that is
// full: lookups take milliseconds, so the shortest wait that Retry-After can say.
const overloadedRetrySeconds = 1

// pageMethods are those of the host's own pages; a lookup allows others.
const pageMethods = "GET, HEAD"

// refusePage answers a method that a page does not have.
func (s *Server) refusePage(e *exchange) {
	e.response = *handler.NewProblem(s.config.DocsURL, handler.MethodNotAllowed, s.config.NewRequestID(), 0)
	for i := range e.response.Headers {
		if field := &e.response.Headers[i]; field.Name == "Allow" {
			field.Value = pageMethods
		}
	}
}

// refuse answers with a problem that the server itself has found.
func (s *Server) refuse(e *exchange, code string) {
	var retryAfter int64
	if code == handler.Overloaded {
		retryAfter = overloadedRetrySeconds
	}
	e.response = *handler.NewProblem(s.config.DocsURL, code, s.config.NewRequestID(), retryAfter)
}

// uriTooLong is the one answer whose status (RFC 9110, section 15.5.15) has no code of
// its own: it is an invalid_query, since nothing but a query can be that long.
func (s *Server) uriTooLong() *handler.Response {
	id := s.config.NewRequestID()
	response := handler.NewProblem(s.config.DocsURL, handler.InvalidQuery, id, 0)
	response.Status = http.StatusRequestURITooLong
	described, _ := handler.FindProblem(handler.InvalidQuery)
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Code      string `json:"code"`
		RequestID string `json:"request_id"`
	}{
		s.config.DocsURL + "/problems/" + described.Code, described.Title, response.Status,
		"The path and query are longer than this server reads. Shorten the name.", described.Code, id,
	})
	if err != nil {
		panic(err) // strings and integers always have a JSON form
	}
	response.Body = body
	return response
}
