package generate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"regedge/handler/ident"
)

// DirectorsConfig is the configuration of Directors.
type DirectorsConfig struct {
	// CINs of the companies that get directors, well-formed, each once.
	CINs     []string
	Seed     uint64
	Out      string // folder; made if it is not there
	Compress Compression
	// Overwrite replaces files of the same names; without it they give ErrExists.
	Overwrite bool
}

// Directors writes made-up directors and appointments for given companies: the files directors.csv and
// appointments.csv, in the proportions of Run. The same configuration gives the same bytes.
func Directors(ctx context.Context, config DirectorsConfig) (Summary, error) {
	if err := os.MkdirAll(config.Out, 0o755); err != nil {
		return Summary{}, fmt.Errorf("make the folder to write to: %w", err)
	}
	g := &generator{seed: config.Seed, calendar: newCalendar(), names: newNamer(config.Seed), total: int64(len(config.CINs))}
	g.Out, g.Compress, g.Overwrite = config.Out, config.Compress, config.Overwrite
	if err := g.appointAll(ctx, config.CINs); err != nil {
		for _, o := range g.open {
			o.abandon()
		}
		return Summary{}, fmt.Errorf("generate directors: %w", err)
	}
	return g.summary, nil
}

func (g *generator) appointAll(ctx context.Context, cins []string) error {
	if err := g.openBoards(); err != nil {
		return err
	}
	for i, cin := range cins {
		if err := g.report(ctx); err != nil {
			return err
		}
		day, err := g.calendar.year(cin)
		if err != nil {
			return err
		}
		end := private
		if cin[12:15] == "OPC" {
			end = onePerson
		}
		g.boards.seat(int64(i), cin, end, day)
	}
	return errors.Join(g.complete(g.boards.directors, lastDay), g.complete(g.boards.appointments, lastDay))
}

// year returns the last day of the year in a CIN, so that no one is appointed before the company
// was incorporated. Companies from before the calendar get its first day.
func (c *calendar) year(cin string) (int, error) {
	written, ok := ident.CIN(cin)
	if !ok || written != cin {
		return 0, fmt.Errorf("%q is not a CIN", cin)
	}
	year := 0
	for _, digit := range cin[8:12] {
		year = year*10 + int(digit-'0')
	}
	switch next := year + 1 - firstYear; {
	case next < 1:
		return 0, nil
	case next < len(c.starts):
		return c.starts[next] - 1, nil
	}
	return len(c.days) - 1, nil
}
