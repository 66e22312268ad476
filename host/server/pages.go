package server

import (
	"encoding/json"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"regedge/handler"
)

func (s *Server) newPages() *httprouter.Router {
	router := httprouter.New()
	router.GET("/healthz", s.health)
	router.GET("/readyz", s.readiness)
	if s.config.Pages != nil {
		s.config.Pages(router)
	}
	return router
}

// servePage answers GET and HEAD for a path of the host's own.
func (s *Server) servePage(e *exchange, w http.ResponseWriter, r *http.Request, page httprouter.Handle, params httprouter.Params) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.refusePage(e, w)
		return
	}
	e.id = s.config.NewRequestID()
	w.Header().Set(handler.HeaderRequestID, e.id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	status := &statusWriter{ResponseWriter: w, status: http.StatusOK}
	page(status, r, params)
	e.status = status.status
}

// statusWriter remembers the status for log and metrics.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// health says that the process answers at all.
func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	writeHealth(w, http.StatusOK, "ok", "")
}

// readiness says whether requests should be sent here, and if not, why.
func (s *Server) readiness(w http.ResponseWriter, _ *http.Request, _ httprouter.Params) {
	if s.draining.Load() {
		writeHealth(w, http.StatusServiceUnavailable, "not ready", "the server is shutting down")
		return
	}
	if s.config.Ready != nil {
		if err := s.config.Ready(); err != nil {
			writeHealth(w, http.StatusServiceUnavailable, "not ready", err.Error())
			return
		}
	}
	writeHealth(w, http.StatusOK, "ready", "")
}

func writeHealth(w http.ResponseWriter, status int, word, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{word, reason})
}
