package handler

import (
	"regedge/handler/charge"
	"regedge/handler/directors"
	"regedge/handler/ident"
)

// Caps on the lists of the specification, section 8, as they stand in the SQL.
const (
	maxLinkedCompanies = "10"
	maxPartners        = "50"
)

// Statements are the handler's SQL by the name of what it finds, with the database that
// each is for, so that tests can hold them against their indexes.
func Statements() map[string]string {
	return map[string]string{
		"access":           accessStatement,
		"company":          companyStatement,
		"company_9":        companyOlder[0](),
		"company_8":        companyOlder[1](),
		"director":         directorStatement,
		"llp":              llpStatement,
		"search_companies": searchStatement,
		"search_older":     olderStatement(),
		"search_llps":      searchLLPStatement,
	}
}

// lookUp validates the parameters and reads the registry with one statement.
func (c *call) lookUp() answer {
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

// read runs a registry statement. Every one of them returns exactly one row whose first
// column is the release that it read, also when it found nothing.
func (c *call) read(statement string, args ...Value) ([]Value, answer) {
	return c.take(c.Registry.Query(statement, args))
}

// take is read of a statement that was run.
func (c *call) take(result *Result, err error) ([]Value, answer) {
	if err != nil || result.Rows() != 1 {
		return nil, answer{outcome: charge.Failed, problem: problem{code: RegistryUnavailable, retryAfter: 1}}
	}
	row := result.Row(0)
	c.release = row[0].Text
	return row[1:], answer{}
}

// readRecord reads one record whose first column is its identifier; notFound is the code
// when there is none.
func (c *call) readRecord(notFound, statement string, args ...Value) ([]Value, answer) {
	result, err := c.Registry.Query(statement, args)
	return c.takeRecord(notFound, result, err)
}

// takeRecord is readRecord of a statement that was run.
func (c *call) takeRecord(notFound string, result *Result, err error) ([]Value, answer) {
	row, failure := c.take(result, err)
	if row != nil && row[0].Kind == Null {
		return nil, answer{outcome: charge.NotFound, problem: problem{code: notFound}}
	}
	return row, failure
}

func text(s string) Value { return Value{Kind: Text, Text: s} }

func flag(b bool) Value {
	if b {
		return Value{Kind: Integer, Int: 1}
	}
	return Value{Kind: Integer}
}

// render writes the object of a record. An object over MaxBody, or one of a damaged row,
// is refused before it is charged.
func render(w *writer) answer {
	if w.damaged || len(w.buf) > MaxBody {
		return failed(InternalError, "")
	}
	return found(w.buf)
}

// newWriter makes a writer with room for the columns of a record and their names, and
// more beside them, so that it does not grow.
func newWriter(columns []Value, more int) *writer {
	const names = 640    // the member names of a company, the largest record
	const timestamp = 16 // by which one is longer than its column
	size := names + timestamp + more
	for i := range columns {
		size += len(columns[i].Text) + 8
	}
	return &writer{buf: make([]byte, 0, size)}
}

func (c *call) company() answer {
	cin, ok := ident.CIN(c.param())
	if !ok {
		return failed(InvalidCIN, "")
	}
	args := []Value{text(cin), flag(c.caller.email), flag(c.caller.phone), {Kind: Integer, Int: ident.CINNumber(cin)}}
	result, err := c.Registry.Query(companyStatement, args)
	for n := 0; n < len(companyOlder) && isOlderSchema(err); n++ {
		result, err = c.Registry.Query(companyOlder[n](), args[:3])
	}
	row, failure := c.takeRecord(CompanyNotFound, result, err)
	if row == nil {
		return failure
	}
	if c.caller.sandbox {
		maskContact(row)
	}
	w := newWriter(row, directors.Len(row[companyBoard].Text)*directorNames)
	writeCompany(w, row)
	return render(w)
}

func (c *call) director() answer {
	din, ok := ident.DIN(c.param())
	if !ok {
		return failed(InvalidDIN, "")
	}
	row, result := c.readRecord(DirectorNotFound, directorStatement, text(din))
	if row == nil {
		return result
	}
	w := newWriter(row, 0)
	w.fields(directorFields, row)
	w.raw("}")
	return render(w)
}

func (c *call) llp() answer {
	llpin, ok := ident.LLPIN(c.param())
	if !ok {
		return failed(InvalidLLPIN, "")
	}
	row, result := c.readRecord(LLPNotFound, llpStatement, text(llpin))
	if row == nil {
		return result
	}
	w := newWriter(row, 0)
	w.fields(llpFields, row)
	w.raw("}")
	return render(w)
}
