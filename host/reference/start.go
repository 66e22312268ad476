package reference

// endpoint is a line of the table of endpoints.
type endpoint struct {
	Path, Answers, Operation string
}

// startPage is what the start page is shown with.
type startPage struct {
	Endpoints []endpoint
	Queries   []string // names to try
	Path      string   // the call that is shown before anyone has searched
	Example   string   // its answer
}

func startData() startPage {
	return startPage{
		Endpoints: []endpoint{
			{"/v1/search/companies?name=…", "Companies and LLPs by name, best first", "Search/searchCompanies"},
			{"/v1/search/llps?llpin=…", "The LLP with exactly this LLPIN", "Search/searchLLPs"},
			{"/v1/companies/{cin}", "A company, with up to 50 directors", "Lookups/getCompany"},
			{"/v1/directors/{din}", "A director, with up to 10 linked companies", "Lookups/getDirector"},
			{"/v1/llps/{llpin}", "An LLP, with up to 50 partners", "Lookups/getLLP"},
		},
		Queries: []string{"every field", "online", "agro"},
		Path:    "/v1/search/companies?name=every+field",
		Example: startExample,
	}
}

const startExample = `{
  "data": [
    {
      "value": "AAZ-9001",
      "label": "EVERY FIELD (MADE-UP) LLP",
      "type": "llp"
    },
    {
      "value": "U72900KA2015PTC990001",
      "label": "EVERY FIELD (MADE-UP) PRIVATE LIMITED",
      "type": "company"
    }
  ],
  "meta": {
    "request_id": "01KADN4XQ0V8R5T2M7C3B9HZ6E",
    "credits_remaining": null,
    "sandbox": true
  }
}`
