package service

import (
	"net/http"
	"net/http/pprof"
)

// ProfilesPath is the path prefix of Profiles.
const ProfilesPath = "/debug/pprof/"

// Profiles returns a handler of Go's profiles for go tool pprof, below ProfilesPath: processor, heap,
// goroutines, locks, execution traces. It leaves out the command line, which may hold tokens.
func Profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ProfilesPath, pprof.Index)
	mux.HandleFunc("GET "+ProfilesPath+"profile", pprof.Profile)
	mux.HandleFunc("GET "+ProfilesPath+"trace", pprof.Trace)
	mux.HandleFunc("GET "+ProfilesPath+"symbol", pprof.Symbol)
	mux.Handle("GET "+ProfilesPath+"cmdline", http.NotFoundHandler())
	return mux
}
