package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/julienschmidt/httprouter"

	"regedge/handler"
	"regedge/handler/charge"
)

// problemPage is the data of a code's page.
type problemPage struct {
	handler.Problem
	Advice  advice
	Request string // the first lines of a call that gets this answer
	Example string // the answer's body
}

// problemsPage lists all codes.
func (s *Site) problemsPage(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {
	s.show(w, r, http.StatusOK, rendering{name: "problems"}, func() page {
		return page{Title: "Error codes", Section: "guides", Data: handler.Problems()}
	})
}

func (s *Site) problem(w http.ResponseWriter, r *http.Request, params httprouter.Params) {
	described, ok := handler.FindProblem(params.ByName("code"))
	if !ok {
		s.missing(w, r)
		return
	}
	advice := advices[described.Code]
	answered := described
	answered.Detail += advice.More
	example, err := exampleOf(s.base(r), answered)
	if err != nil {
		http.Error(w, "this page cannot be shown", http.StatusInternalServerError)
		return
	}
	s.show(w, r, http.StatusOK, rendering{name: "problem", about: described.Code}, func() page {
		return page{
			Title: described.Title, Section: "guides",
			Data: problemPage{
				Problem: described, Advice: advice, Example: example,
				Request: requestOf(described.Code, advice.Call),
			},
		}
	})
}

// exampleRequestID is the request id of the examples.
const exampleRequestID = "01KADN4XQ0V8R5T2M7C3B9HZ6E"

// exampleOf is the body of an answer with this code, laid out for reading.
func exampleOf(base string, p handler.Problem) (string, error) {
	response := handler.NewProblem(base, p, exampleRequestID, 0)
	var b bytes.Buffer
	if err := json.Indent(&b, response.Body, "", "  "); err != nil {
		return "", err
	}
	return b.String(), nil
}

// requestOf returns an example's request as sent over HTTP.
func requestOf(code, path string) string {
	method, authorization := http.MethodGet, "Authorization: Bearer <API_KEY>\n"
	switch code {
	case handler.InvalidIdempotency:
		authorization += "Idempotency-Key: with a space\n"
	case charge.IdempotencyKeyReused:
		authorization += "Idempotency-Key: d9b2d63d-a233-4123-847a-7090ab1e4b1d\n"
	case handler.MethodNotAllowed:
		method = http.MethodPost
	case handler.MissingAPIKey:
		authorization = ""
	case handler.InvalidAPIKey:
		authorization = "Authorization: Bearer reg_live_…\n"
	}
	return fmt.Sprintf("%s %s HTTP/1.1\n%s", method, path, authorization)
}

// advice is the text that a code's page adds to the table of codes.
type advice struct {
	// Means says what happened, in one or two sentences.
	Means string
	// Do lists what to do, the likeliest first.
	Do []string
	// Call is an example path that gets this answer, where there is one.
	Call string
	// More is what the answer to Call says behind the detail of the table of codes.
	More string
	// Retry says whether and when the same call can succeed.
	Retry string
}

// sandboxAlone is the advice about a number of the examples, which newcomers look up with a live key.
func sandboxAlone(number string) string {
	return "With a live key " + number + " and the other made-up records of the guides are not found: they answer the sandbox key alone. Take a number that a search has found."
}

const (
	retryNever = "No. The same call gets the same answer."
	retryAfter = "Yes, after the seconds in Retry-After."
)

// advices has one entry for each code of handler.Problems, which a test checks.
var advices = map[string]advice{
	handler.InvalidCIN: {
		Means: "The path holds no valid CIN. Nothing was looked up.",
		Do: []string{
			"Compare it with the form: a letter, 5 digits, 2 letters, 4 digits, 3 letters, 6 digits. The letter O in place of a zero is the usual slip.",
			"An LLPIN (ZZZ-0001) belongs to /v1/llps; numbers of foreign companies (F and digits) are not in this registry.",
			"If you have only a name, find the CIN with /v1/search/companies.",
		},
		Call: "/v1/companies/U72900ZZ2O15PTC000001", More: " Character 10 of this one is not a digit.", Retry: retryNever,
	},
	handler.InvalidDIN: {
		Means: "The path holds no valid DIN. Nothing was looked up.",
		Do: []string{
			"Send digits only, 8 at most. Leading zeros may be left out.",
			"If the number came from a spreadsheet, check that it was not turned into 1.23E+07.",
		},
		Call: "/v1/directors/99999901X", Retry: retryNever,
	},
	handler.InvalidLLPIN: {
		Means: "The LLPIN is missing, given more than once, longer than 20 characters, or not of its form.",
		Do: []string{
			"Send three letters, a hyphen if you like, and four digits: ZZZ-0001 or zzz0001.",
			"A company's CIN belongs to /v1/companies.",
		},
		Call: "/v1/llps/ZZZ-12", Retry: retryNever,
	},
	handler.InvalidQuery: {
		Means: "A parameter of the search is missing, out of bounds, or given more than once. The detail names it.",
		Do: []string{
			"Give name once, with 1 to 200 characters, percent-encoded as UTF-8.",
			"Give limit at most once, as an integer from 1 to 10.",
		},
		Call: "/v1/search/companies?limit=5", Retry: retryNever,
	},
	handler.InvalidIdempotency: {
		Means: "The header Idempotency-Key is empty, longer than 64 characters, has a space or a character outside of ASCII, or came twice. Nothing was looked up.",
		Do: []string{
			"Send a random UUID, a new one for each lookup, and the same one when you repeat it.",
			"Leave the header out if a lookup that is repeated may be charged again.",
		},
		Call: "/v1/llps/ZZZ-0001", Retry: retryNever,
	},
	handler.InvalidRequest: {
		Means: "What arrived is not a request that can be read without doubt. The connection was closed, since what follows on it can't be told apart.",
		Do: []string{
			"Use a well-known HTTP library, and let it write the request line and the header.",
			"Send Host once, and no line breaks or control characters in fields.",
			"Call an address that speaks HTTPS as https://, not http://.",
		},
		Call: "/v1/llps/ZZZ-0001", Retry: retryNever,
	},
	handler.RequestTimeout: {
		Means: "The request line and the header did not arrive within five seconds.",
		Do: []string{
			"Send the request again, whole.",
		},
		Call: "/v1/llps/ZZZ-0001", Retry: "Yes, at once.",
	},
	handler.URITooLong: {
		Means: "Path and query are longer than 8,192 bytes together. Nothing was looked up.",
		Do: []string{
			"Shorten the name: at most 200 characters are searched for.",
		},
		Call: "/v1/search/companies?name=…", Retry: retryNever,
	},
	handler.HeaderTooLarge: {
		Means: "The request line and the header fields are longer than 16 KiB together.",
		Do: []string{
			"Send fewer or shorter fields; the service reads Authorization, Idempotency-Key and Traceparent. Keep Idempotency-Key: it is what keeps a retry from being charged again.",
		},
		Call: "/v1/llps/ZZZ-0001", Retry: retryNever,
	},
	handler.MissingAPIKey: {
		Means: "The call carries no API key.",
		Do: []string{
			"Send the header Authorization: Bearer and your key.",
			"To try the service, use the sandbox key reg_sandbox_public.",
			"If you send one, check whether a proxy or a redirect drops the header.",
		},
		Call: "/v1/llps/ZZZ-0001", Retry: retryNever,
	},
	handler.InvalidAPIKey: {
		Means: "The key is not one of ours, has a typing error, has expired, or was revoked. These are not told apart, so that nobody can learn which keys once existed.",
		Do: []string{
			"Copy the key again, whole: it begins with reg_live_ and has 47 characters.",
			"Check in the dashboard whether it is still active, and create a new one if not.",
			"Send exactly one Authorization header, with the scheme Bearer.",
		},
		Call: "/v1/llps/ZZZ-0001", Retry: retryNever,
	},
	charge.InsufficientCredits: {
		Means: "The account has no credits left, at this node and at every other. What was asked for is not answered, found or not.",
		Do: []string{
			"Add credits; the next call after that succeeds.",
			"Watch X-Credits-Remaining on successful calls to see it coming.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: "Yes, as soon as the account has credits again.",
	},
	handler.AddressNotAllowed: {
		Means: "The key is valid, but its owner has limited it to networks, and the call came from another address. The detail names the address that was seen.",
		Do: []string{
			"Call from one of the networks, or ask the owner of the key to add the address. It takes effect within two seconds.",
			"Behind a proxy or a NAT, it is its address that counts.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: "Yes, from an allowed address.",
	},
	handler.PlanWithoutAPIAccess: {
		Means: "The key is valid, but the plan of its account does not include calls.",
		Do: []string{
			"Change the plan. It takes effect within two seconds; the key stays the same.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: "Yes, after the plan was changed.",
	},
	handler.AccountSuspended: {
		Means: "The key is valid, but its account was suspended by an operator.",
		Do: []string{
			"Ask support, with the request id.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: "Yes, after the suspension was lifted.",
	},
	handler.CompanyNotFound: {
		Means: "The CIN is well formed, but the registry holds no such company. The call was free and counts towards the daily cap of 100 not-found calls.",
		Do: []string{
			sandboxAlone("U72900ZZ2015PTC000001"),
			"Look for the company by its name with /v1/search/companies: a company that changed its activity, state or form has a new CIN.",
			"See X-Registry-Release for the release of the registry that was read.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC999999", Retry: "Not before the next release of the registry.",
	},
	handler.DirectorNotFound: {
		Means: "The DIN is well formed, but the registry holds no such director. The call was free and counts towards the daily cap of 100 not-found calls.",
		Do: []string{
			sandboxAlone("99999901"),
			"Compare the number with its source: a lost digit still makes a well-formed DIN.",
			"If no DIN is found at all, this registry has no persons: the government's published files hold none. Ask whoever runs the service.",
		},
		Call: "/v1/directors/99999999", Retry: "Not before the next release of the registry.",
	},
	handler.LLPNotFound: {
		Means: "The LLPIN is well formed, but the registry holds no such LLP. The call was free and counts towards the daily cap of 100 not-found calls.",
		Do: []string{
			sandboxAlone("ZZZ-0001"),
			"Look for the LLP by its name with /v1/search/companies, which finds LLPs too.",
			"To check numbers without an error for those that do not exist, use /v1/search/llps.",
			"If hardly any LLPIN is found, this registry may have been made of companies alone. Ask whoever runs the service.",
		},
		Call: "/v1/llps/ZZZ-9999", Retry: "Not before the next release of the registry.",
	},
	handler.RouteNotFound: {
		Means: "There is nothing at this path. The key was not checked.",
		Do: []string{
			"Compare the path with the one that the detail names, or with the five of the reference; it is in lower case and has no slash at its end.",
			"Percent-encode what you put into it.",
		},
		Call: "/v1/companies", Retry: retryNever,
	},
	handler.MethodNotAllowed: {
		Means: "The path is right, but it is only read with GET.",
		Do: []string{
			"Use GET. HEAD, POST and the others are not answered.",
		},
		Call: "/v1/llps/ZZZ-0001", Retry: retryNever,
	},
	charge.IdempotencyKeyReused: {
		Means: "In the last 10 minutes this API key was charged for a lookup of another path or query under the same Idempotency-Key. This one was not charged.",
		Do: []string{
			"Make a new Idempotency-Key for each lookup; keep it only to repeat that one.",
			"If you did not mean to look up something else, compare path and query byte by byte: name=a+b and name=a%20b are two.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: "Yes, under another Idempotency-Key, or after 10 minutes.",
	},
	charge.RateLimitExceeded: {
		Means: "The account has used up its requests of this minute, over all its keys, or the key those that its owner allows it; with the sandbox key, your address has. A refused request does not count again.",
		Do: []string{
			"Wait for the seconds in Retry-After, then go on.",
			"Spread calls by RateLimit-Remaining and RateLimit-Reset to stay below the limit.",
			"RateLimit-Limit says how many a minute there are. A key may have fewer than its account: its owner can raise that.",
			"A larger plan has a higher rate: 60, 300 or 1,200 a minute.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: retryAfter,
	},
	charge.KeyCreditsExceeded: {
		Means: "The owner of the key allows it a number of credits in a month, and they are spent. Other keys of the account go on.",
		Do: []string{
			"Wait for the number of seconds in Retry-After: to the end of the month, UTC.",
			"Or ask the owner to raise the limit of the key; it works again within two seconds.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: "Yes, with the next month, UTC, or after the limit was raised.",
	},
	charge.MonthlyVolumeExceeded: {
		Means: "The charged calls that the plan includes for this month are used up. Months begin at 00:00 UTC on the first.",
		Do: []string{
			"Change to a larger plan, which lifts the limit at once.",
			"Or wait for the next month; Retry-After says how long.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: retryAfter,
	},
	charge.NotFoundCapExceeded: {
		Means: "Today 100 calls of this key found nothing in the registry; with the sandbox key, 100 calls from your address. Until the next day, UTC, all endpoints refuse it.",
		Do: []string{
			"Find out why so many calls miss: numbers from an old list, or a field that was mixed up.",
			"Only look up numbers that came from a search or another record.",
			"Wait until 00:00 UTC. Another key of the account has a count of its own.",
		},
		Call: "/v1/llps/ZZZ-9999", Retry: retryAfter,
	},
	handler.InternalError: {
		Means: "The service failed to answer. Nothing was charged.",
		Do: []string{
			"Try again, with a growing pause between the attempts.",
			"If it stays, report the request id: it is in the log beside the cause.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: "Yes, once or twice.",
	},
	charge.MeteringUnavailable: {
		Means: "The account's balance cannot be reached at the moment, and no call is answered without it. Nothing was charged.",
		Do: []string{
			"Try again after the seconds in Retry-After.",
			"The sandbox key goes on working in the meantime.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: retryAfter,
	},
	handler.RegistryUnavailable: {
		Means: "This node cannot read the registry at the moment. Nothing was charged.",
		Do: []string{
			"Try again after the seconds in Retry-After; another node may be able to answer at once.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: retryAfter,
	},
	handler.Overloaded: {
		Means: "This node is answering as many requests as it can, or as many as are the share of your key or your address while others want theirs. Your request was refused before any work was done, and nothing was charged.",
		Do: []string{
			"Try again after the seconds in Retry-After.",
			"Make fewer calls at the same time.",
		},
		Call: "/v1/companies/U72900ZZ2015PTC000001", Retry: retryAfter,
	},
}
