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

// CompareLate has the projector compare what may have arrived late when one of the channels says so that it sends, not
// after a minute. It is called before Run.
func (w *Writer) CompareLate() (armed <-chan chan<- time.Time) {
	all := make(chan chan<- time.Time, 8)
	w.projector.after = func(time.Duration) <-chan time.Time {
		late := make(chan time.Time, 1)
		all <- late
		return late
	}
	return all
}
