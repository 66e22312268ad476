package meter

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"regedge/handler/charge"
)

// Handler serves the meter's contract over HTTP for a component in another process,
// with a bearer token (package charge).
func (m *Meter) Handler(token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+charge.ChargePath, m.serveCharge)
	mux.HandleFunc("POST "+charge.VoidPath, m.serveVoid)
	return bearer(token, mux)
}

// bearer lets requests with the token through. The comparison takes the same time
// wherever the tokens differ.
func bearer(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if token == "" || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (m *Meter) serveCharge(w http.ResponseWriter, r *http.Request) {
	request, err := charge.ParseRequest(r.URL.RawQuery)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	v := m.Charge(r.Context(), request)
	v.Headers(w.Header().Set)
	w.WriteHeader(charge.Status(v.Code))
	if http.NewResponseController(w).Flush() != nil || r.Context().Err() != nil {
		m.Doubt(request.ID)
	}
}

func (m *Meter) serveVoid(w http.ResponseWriter, r *http.Request) {
	id, err := charge.ParseVoid(r.URL.RawQuery)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := m.Void(r.Context(), id); err != nil {
		m.config.Logger.Error("void failed", "request_id", id, "error", err)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
