// Package regedge calls the registry lookup API: Indian companies, LLPs and directors by number,
// and companies and LLPs by name.
//
//	client, err := regedge.New(regedge.Config{}) // regedge dev on this machine, with the sandbox key
//	company, err := client.Company(ctx, "U72900ZZ2015PTC000001")
//	fmt.Println(company.Data.Name, company.RequestID)
//
// Each method is one call of the service and returns a [Result]: the data, and what the service
// said beside it (request id, credits, rate). An answer that is not a success is an [*Error] with
// the code of the problem:
//
//	if errors.Is(err, regedge.CompanyNotFound) { … }
//
// A call is repeated when the connection breaks, when an attempt takes longer than
// [Config.Timeout], and after a status that says that the same call may succeed later (408, 429,
// 5xx). Pauses grow and are random, and are never shorter than the Retry-After of the answer. All
// attempts of a call carry the same Idempotency-Key, so that a lookup whose answer was lost is not
// charged again by the edge that answered it.
package regedge
