package writer

import (
	"net/http"
	"time"
)

// ChangingRoutes lists what operators and owners can change, as "method path".
func (w *Writer) ChangingRoutes() (routes []string) {
	for _, r := range w.table() {
		if r.method != http.MethodGet && r.needs != edges {
			routes = append(routes, r.method+" "+r.path)
		}
	}
	return routes
}

// CompareLate has the projector compare what may have arrived late when late says so, not after a minute. It is called
// before Run.
func (w *Writer) CompareLate(late <-chan time.Time) {
	w.projector.after = func(time.Duration) <-chan time.Time { return late }
}
