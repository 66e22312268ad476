package server

// Served is a lookup with a live key, as it was answered.
type Served struct {
	ID       string // request id
	Key      int64  // id of the access database
	Endpoint string // as in package charge
	Status   int
	Code     string // of the problem, "" for none
	Credits  int64
}

var endpointNames = [routeCount]string{
	routeCompanies: "companies", routeDirectors: "directors", routeLLPs: "llps",
	routeSearchCompanies: "search_companies", routeSearchLLPs: "search_llps",
}

// noteServed reports a lookup that reached the meter. One refused earlier has no
// known key.
func (s *Server) noteServed(e *exchange, code string) {
	if s.config.Served == nil || e.bill.Account == 0 {
		return
	}
	s.config.Served(Served{
		ID: e.id, Key: e.bill.Key, Endpoint: endpointNames[e.route], Status: e.response.Status, Code: code, Credits: e.bill.Cost,
	})
}
