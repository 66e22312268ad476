package handler

import "regedge/handler/charge"

// Statements returns the handler's SQL statements by the name of what they read, so that
// tests can check their query plans. "access" reads the access database, the others the
// registry.
func Statements() map[string]string {
	return map[string]string{
		"access":           accessStatement,
		"company":          companyStatement,
		"director":         directorStatement,
		"llp":              llpStatement,
		"search_acronym":   acronymStatement,
		"search_begin":     beginNumberStatement,
		"search_companies": searchStatement,
		"search_end":       endNumberStatement,
		"search_forgiving": forgivingStatement,
		"search_llps":      searchLLPStatement,
		"search_number":    searchNumberStatement,
		"like_number":      likeNumberStatement,
	}
}

// answer is the result of a lookup before the meter is asked: the data of a 200, or a problem.
type answer struct {
	outcome charge.Outcome
	data    []byte // JSON
	problem problem
}

// lookUp validates the header and the parameters, and reads the registry with one statement.
func (c *call) lookUp(req *Request) answer {
	if !c.readIdempotency(req) {
		return failed(InvalidIdempotency, "")
	}
	switch c.route.endpoint {
	case charge.Companies:
		return c.company()
	case charge.Directors:
		return c.director()
	case charge.LLPs:
		return c.llp()
	case charge.SearchCompanies:
		return c.searchCompanies()
	default:
		return c.searchLLPs()
	}
}

func failed(code, detail string) answer {
	return answer{outcome: charge.Failed, problem: problem{code: code, detail: detail}}
}

func found(data []byte) answer { return answer{outcome: charge.Found, data: data} }

// read runs a registry statement. Every such statement returns exactly one row, whether it finds
// something or not; the row's first column is the release that was read.
func (c *call) read(statement string, args ...Value) ([]Value, answer) {
	result, err := c.Registry.Query(statement, args)
	if err != nil || result.Rows() != 1 {
		c.cause = err
		return nil, answer{outcome: charge.Failed, problem: problem{code: RegistryUnavailable, retryAfter: 1}}
	}
	row := result.Row(0)
	c.release = row[0].Text
	return row[1:], answer{}
}

// readRecord reads the record whose identifier is the first argument; the identifier is also the
// statement's first column. notFound is the problem code if there is no such record. The sandbox key
// finds made-up records too; a live key that asks for one is told that only the sandbox key finds it.
func (c *call) readRecord(notFound, statement string, args ...Value) ([]Value, answer) {
	row, failure := c.read(statement, args...)
	if row == nil {
		return nil, failure
	}
	if c.caller.sandbox {
		if record := sandboxRecord(args[0].Text); record != nil {
			return record, answer{}
		}
	}
	if row[0].Kind != Null {
		return row, answer{}
	}
	absent := problem{code: notFound}
	if sandboxRecord(args[0].Text) != nil {
		absent.detail = "This is a made-up record, which only the sandbox key finds: reg_sandbox_public. This call was free."
	}
	return nil, answer{outcome: charge.NotFound, problem: absent}
}

func text(s string) Value { return Value{Kind: Text, Text: s} }

func flag(b bool) Value {
	if b {
		return Value{Kind: Integer, Int: 1}
	}
	return Value{Kind: Integer}
}

// renderFields answers with the object of a record whose columns are its members.
func renderFields(list []field, row []Value) answer {
	w := newWriter(row, 0)
	w.fields(list, row)
	w.raw("}")
	return render(w)
}

// render answers with the object of a record. An object over MaxBody, or one of a damaged row, is refused
// before it is charged.
func render(w *writer) answer {
	if w.damaged || len(w.buf) > MaxBody {
		return failed(InternalError, "")
	}
	return found(w.buf)
}

// newWriter returns a writer whose buffer has room for a record's columns, their names and extra more
// bytes, so that it does not grow.
func newWriter(columns []Value, extra int) *writer {
	// names is more than the bytes of a company's member names (about 310; the largest record),
	// so that fields can be added: TestRecordsAreWrittenWithoutGrowing fails when it is too small.
	const names = 640
	const timestamp = 16 // by how much one is longer in JSON than in its column
	size := names + timestamp + extra
	for i := range columns {
		size += len(columns[i].Text) + 8
	}
	return &writer{buf: make([]byte, 0, size)}
}
