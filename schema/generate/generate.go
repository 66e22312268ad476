package generate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
)

// MostCompanies keeps the registration numbers of the largest state within six digits.
const MostCompanies = 5_000_000

// reportEvery is the number of records between progress reports and checks for cancellation.
const reportEvery = 4096

// Config says what Run writes.
type Config struct {
	Companies int    // 1 to MostCompanies
	Seed      uint64 // another seed gives other data
	Out       string // folder; made if it is not there
	Compress  Compression
	// OlderShare is the share, 0 to 1, of companies that are also in files of the older format
	// (B), among those incorporated by then.
	OlderShare float64
	// Overwrite replaces files of the same names; without it they give ErrExists.
	Overwrite bool
	// Progress, if set, is called from time to time with the number of companies and LLPs
	// written.
	Progress func(done, total int64)
}

// File is one file that was written.
type File struct {
	Name string
	AsOf string // the date of its content; empty for pincodes, which have none
	Rows int64
}

// Summary lists the files in an order in which they can be imported, pincodes first.
type Summary struct{ Files []File }

// Rows returns the number of rows in all files.
func (s Summary) Rows() int64 {
	var rows int64
	for _, file := range s.Files {
		rows += file.Rows
	}
	return rows
}

// generator is one run.
type generator struct {
	Config
	seed     uint64
	calendar *calendar
	names    *namer
	country  *country
	boards   *boards
	contacts *output
	summary  Summary
	open     []*output // not complete yet
	done     int64
	total    int64
}

// Run writes the files. When it fails or ctx ends, complete files stay and incomplete ones are
// removed.
func Run(ctx context.Context, config Config) (Summary, error) {
	if err := config.validate(); err != nil {
		return Summary{}, err
	}
	g := newGenerator(config)
	if err := g.run(ctx); err != nil {
		for _, o := range g.open {
			o.abandon()
		}
		return Summary{}, fmt.Errorf("generate: %w", err)
	}
	return g.summary, nil
}

func (c *Config) validate() error {
	switch {
	case c.Companies < 1 || c.Companies > MostCompanies:
		return fmt.Errorf("companies must be 1 to %d, not %d", MostCompanies, c.Companies)
	case c.OlderShare < 0 || c.OlderShare > 1 || math.IsNaN(c.OlderShare):
		return fmt.Errorf("the share of older companies must be 0 to 1, not %g", c.OlderShare)
	case c.Out == "":
		return errors.New("the folder to write to is not given")
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return fmt.Errorf("make the folder to write to: %w", err)
	}
	return nil
}

func newGenerator(config Config) *generator {
	g := &generator{Config: config, seed: config.Seed, calendar: newCalendar(), names: newNamer(config.Seed)}
	g.country = newCountry(g.seed, g.names, config.Companies)
	g.total = int64(config.Companies) + g.llpCount()
	return g
}

func (g *generator) run(ctx context.Context) error {
	offices, err := g.create("pincodes.csv", formatC, "\n")
	if err != nil {
		return err
	}
	g.country.writeOffices(offices, g.seed)
	if err := g.complete(offices, ""); err != nil {
		return err
	}
	if err := g.openBoards(); err != nil {
		return err
	}
	if g.contacts, err = g.create("contacts.csv", contactsHeader, "\n"); err != nil {
		return err
	}
	if err := g.companies(ctx); err != nil {
		return err
	}
	if err := g.llps(ctx); err != nil {
		return err
	}
	for _, o := range []*output{g.boards.directors, g.boards.appointments, g.contacts} {
		if err := g.complete(o, lastDay); err != nil {
			return err
		}
	}
	return nil
}

// ErrExists is returned for an existing file, which may be another program's.
var ErrExists = errors.New("the file is there already")

// OlderPrefix begins the names of the files of the older format. No other file begins with it, so that a
// pattern finds all others.
const OlderPrefix = "2021-companies-"

func (g *generator) create(name, header, end string) (*output, error) {
	o, err := create(g.Out, name, g.Compress, header, end)
	if err != nil {
		return nil, err
	}
	g.open = append(g.open, o)
	if _, err := os.Lstat(o.path); err == nil && !g.Overwrite {
		return nil, fmt.Errorf("create %s: %w", o.path, ErrExists)
	}
	return o, nil
}

// complete closes a file and lists it. A file without rows is not kept: an import refuses it.
func (g *generator) complete(o *output, asOf string) error {
	finish := o.close
	if o.rows == 0 {
		finish = o.drop
	}
	if err := finish(); err != nil {
		return err
	}
	g.open = slices.DeleteFunc(g.open, func(other *output) bool { return other == o })
	if o.rows > 0 {
		g.summary.Files = append(g.summary.Files, File{o.name, asOf, o.rows})
	}
	return nil
}

func (g *generator) openBoards() error {
	b := &boards{seed: g.seed, names: g.names, calendar: g.calendar}
	var first, second error
	b.directors, first = g.create("directors.csv", directorsHeader, "\n")
	b.appointments, second = g.create("appointments.csv", appointmentsHeader, "\n")
	g.boards = b
	return errors.Join(first, second)
}

// report counts a record, and returns the error of ctx if it has ended.
func (g *generator) report(ctx context.Context) error {
	g.done++
	if g.done%reportEvery != 0 && g.done != g.total {
		return nil
	}
	if g.Progress != nil {
		g.Progress(g.done, g.total)
	}
	return ctx.Err()
}
