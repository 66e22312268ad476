package conformance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// File is one file of vectors. Head is the comment at its beginning.
type File struct {
	Path    string // from the module's root, for messages
	Head    []string
	Vectors []*Vector
}

// Vector is one test: a state of the service, and exchanges in order.
type Vector struct {
	Name      string
	Comments  []string
	Given     *Given // nil when no account is needed
	Client    string // "" for an address of the vector's own
	Outage    string // "" when everything works
	Exchanges []*Exchange
}

// advances reports whether the vector moves the clock.
func (v *Vector) advances() bool {
	return slices.ContainsFunc(v.Exchanges, func(e *Exchange) bool { return e.Advance != 0 })
}

// Given describes the account that a vector starts with.
type Given struct {
	Plan      string
	Credits   int64
	Suspended bool
	Allowed   string // the network from which the first key may be used, "" for all
	PerMinute int64  // the rate of the first key, 0 for none
	Spent     bool   // the first key has spent the credits of its month
}

// Exchange is one request and the expected answer.
type Exchange struct {
	Advance time.Duration // of the meter's clock, before the request
	Times   int           // how often the request is sent, at least 1
	Request []string      // the request line without the version, then header lines
	Status  int
	Headers []string // sorted
	Body    []byte   // compact, without surrounding space
	line    int      // of the request in the file
}

// Parse reads a file of vectors.
func Parse(r io.Reader) (*File, error) {
	p := parser{file: &File{}}
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		p.number++
		if err := p.line(strings.TrimRight(scanner.Text(), " ")); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.number, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, err
	}
	return p.file, p.endBody()
}

type parser struct {
	number   int // of the line
	file     *File
	vector   *Vector
	exchange *Exchange // the one whose lines are being read
	next     Exchange  // "times" and "advance" for the next one
	body     []string
}

func (p *parser) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case word == "===":
		p.vector = &Vector{Name: rest}
		p.file.Vectors = append(p.file.Vectors, p.vector)
		return p.endBody()
	case p.vector == nil:
		if line != "" {
			p.file.Head = append(p.file.Head, line)
		}
		return nil
	case strings.HasPrefix(line, "#"):
		p.vector.Comments = append(p.vector.Comments, line)
		return nil
	case word == ">":
		return p.request(rest)
	case word == "<":
		return p.response(rest)
	case word == "given" && p.exchange == nil:
		given, err := parseGiven(rest)
		p.vector.Given = given
		return err
	case word == "client" && p.exchange == nil:
		p.vector.Client = rest
		return nil
	case word == "outage" && p.exchange == nil:
		p.vector.Outage = rest
		return nil
	case word == "times":
		n, err := strconv.Atoi(rest)
		p.next.Times = n
		return joinErrors(err, p.endBody())
	case word == "advance":
		d, err := time.ParseDuration(rest)
		p.next.Advance = d
		return joinErrors(err, p.endBody())
	case line == "" || p.exchange != nil:
		p.body = append(p.body, line)
		return nil
	}
	return fmt.Errorf("unknown line: %q", line)
}

func joinErrors(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func parseGiven(words string) (*Given, error) {
	g := &Given{}
	for _, word := range strings.Fields(words) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "plan":
			g.Plan = value
		case "credits":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("credits: %w", err)
			}
			g.Credits = n
		case "suspended":
			g.Suspended = true
		case "spent":
			g.Spent = true
		case "per_minute":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("per_minute: %w", err)
			}
			g.PerMinute = n
		case "allowed":
			g.Allowed = value
		default:
			return nil, fmt.Errorf("unknown option of given: %q", word)
		}
	}
	if g.Plan == "" {
		return nil, fmt.Errorf("given needs plan=ID")
	}
	return g, nil
}

// request reads a request line, or a header line of the request before it.
func (p *parser) request(rest string) error {
	method, _, isLine := strings.Cut(rest, " ")
	if isLine && !strings.HasSuffix(method, ":") {
		if err := p.endBody(); err != nil {
			return err
		}
		e := p.next
		p.next = Exchange{}
		e.Times, e.line = max(e.Times, 1), p.number
		p.exchange = &e
		p.vector.Exchanges = append(p.vector.Exchanges, p.exchange)
	}
	if p.exchange == nil {
		return fmt.Errorf("a header before any request: %q", rest)
	}
	p.exchange.Request = append(p.exchange.Request, rest)
	return nil
}

func (p *parser) response(rest string) (err error) {
	switch {
	case p.exchange == nil:
		return fmt.Errorf("a response before any request: %q", rest)
	case p.exchange.Status == 0:
		p.exchange.Status, err = strconv.Atoi(rest)
	default:
		p.exchange.Headers = append(p.exchange.Headers, rest)
	}
	return err
}

// endBody ends an exchange: its body is the lines since its last header.
func (p *parser) endBody() error {
	body := strings.TrimSpace(strings.Join(p.body, "\n"))
	p.body = nil
	if p.exchange == nil {
		return nil
	}
	if body != "" {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(body)); err != nil {
			return fmt.Errorf("body of %s: %w", p.exchange.Request[0], err)
		}
		p.exchange.Body = compact.Bytes()
	}
	p.exchange = nil
	return nil
}

// Format is the inverse of Parse.
func (f *File) Format() []byte {
	var b bytes.Buffer
	for _, line := range f.Head {
		fmt.Fprintln(&b, line)
	}
	for _, v := range f.Vectors {
		v.format(&b)
	}
	return b.Bytes()
}

func (v *Vector) format(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n=== %s\n", v.Name)
	for _, line := range v.Comments {
		fmt.Fprintln(b, line)
	}
	if g := v.Given; g != nil {
		fmt.Fprintf(b, "given plan=%s credits=%d", g.Plan, g.Credits)
		if g.Suspended {
			b.WriteString(" suspended")
		}
		if g.Allowed != "" {
			fmt.Fprintf(b, " allowed=%s", g.Allowed)
		}
		if g.PerMinute != 0 {
			fmt.Fprintf(b, " per_minute=%d", g.PerMinute)
		}
		if g.Spent {
			b.WriteString(" spent")
		}
		b.WriteByte('\n')
	}
	if v.Client != "" {
		fmt.Fprintf(b, "client %s\n", v.Client)
	}
	if v.Outage != "" {
		fmt.Fprintf(b, "outage %s\n", v.Outage)
	}
	for _, e := range v.Exchanges {
		e.format(b)
	}
}

func (e *Exchange) format(b *bytes.Buffer) {
	if e.Advance != 0 {
		fmt.Fprintf(b, "advance %s\n", e.Advance)
	}
	if e.Times > 1 {
		fmt.Fprintf(b, "times %d\n", e.Times)
	}
	for _, line := range e.Request {
		fmt.Fprintf(b, "> %s\n", line)
	}
	e.formatAnswer(b)
}

func (e *Exchange) formatAnswer(b *bytes.Buffer) {
	fmt.Fprintf(b, "< %d\n", e.Status)
	for _, line := range e.Headers {
		fmt.Fprintf(b, "< %s\n", line)
	}
	if len(e.Body) > 0 {
		if json.Indent(b, e.Body, "", "  ") != nil {
			b.Write(e.Body)
		}
		b.WriteByte('\n')
	}
}
