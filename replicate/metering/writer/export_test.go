package writer

import "net/http"

// ChangingRoutes lists what operators and owners can change, as "method path".
func (w *Writer) ChangingRoutes() (routes []string) {
	for _, r := range w.table() {
		if r.method != http.MethodGet && r.needs != edges {
			routes = append(routes, r.method+" "+r.path)
		}
	}
	return routes
}
