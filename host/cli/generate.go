package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/ncruces/go-sqlite3"

	"regedge/host/hint"
	"regedge/schema/generate"
)

type generateCommand struct {
	Companies  int     `env:"-" default:"10000" help:"How many companies (${default})."`
	Seed       uint64  `env:"-" default:"1" help:"Another seed makes another registry (${default})."`
	Out        string  `env:"-" required:"" type:"path" placeholder:"DIR" help:"Folder to write to; made when missing."`
	Compress   string  `env:"-" enum:"none,gzip,zstd" default:"none" help:"none, gzip or zstd (${default})."`
	OlderShare float64 `env:"-" default:"0.1" help:"Share of the companies, 0 to 1, that are in files of the older format too (${default})."`
	Force      bool    `env:"-" help:"Replace files that are there already."`
}

// Validate refuses early what would fail later.
func (c *generateCommand) Validate() error {
	if c.Companies < 1 || c.Companies > generate.MostCompanies {
		return fmt.Errorf("--companies is 1 to %d", generate.MostCompanies)
	}
	if !(c.OlderShare >= 0 && c.OlderShare <= 1) { // not a number is refused, too
		return errors.New("--older-share is 0 to 1")
	}
	return nil
}

// Run writes the files and lists them.
func (c *generateCommand) Run(ctx context.Context, m *Main) error {
	bar := newProgress(m.Stderr, m.Now, "generating", "records")
	summary, err := generate.Run(ctx, generate.Config{
		Companies: c.Companies, Seed: c.Seed, Out: c.Out, Compress: generate.Compression(c.Compress),
		OlderShare: c.OlderShare, Overwrite: c.Force, Progress: bar.set,
	})
	bar.finish()
	if err != nil {
		return c.explain(ctx, err)
	}
	table := tabwriter.NewWriter(m.Stdout, 0, 0, 2, ' ', 0)
	row(table, "FILE", "AS OF", "ROWS")
	for _, f := range summary.Files {
		row(table, f.Name, f.AsOf, f.Rows)
	}
	fmt.Fprintf(table, "%d rows in %s; nobody in them is real\n", summary.Rows(), c.Out)
	fmt.Fprintf(table, "\nTo import them:\n\n%s", c.imports(summary))
	return table.Flush()
}

// explain adds hints. The files that were complete before an error stay.
func (c *generateCommand) explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, generate.ErrExists):
		return hint.With(err, "--out takes another folder, --force replaces what is there")
	case ctx.Err() != nil:
		return hint.With(fmt.Errorf("interrupted: %s has some of the files", c.Out), "the same command with --force begins again")
	}
	return explainFull(err, "run the same command again with --force", "--out")
}

// explainFull adds a hint to the error of a full disk. again is what to run once there is room, and flag names the
// directory that is written to. SQLite often reports a full disk as "disk I/O error".
func explainFull(err error, again, flag string) error {
	isDisk := func(of error) bool { return errors.Is(err, of) }
	if hint.Of(err) != "" || !slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, sqlite3.FULL, sqlite3.IOERR}, isDisk) {
		return err
	}
	return hint.With(err, "is the disk full (df), or broken (dmesg)? Make room and %s, or name another directory with %s", again, flag)
}

// imports returns the commands that import the files. Those of the older format have a date of their own. They come
// last, since importing the larger part into an empty registry takes half as long. The patterns use only stars: other
// signs mean different things to sh, zsh and fish.
func (c *generateCommand) imports(summary generate.Summary) string {
	type release struct{ asOf, files string }
	var older, newest release
	for _, f := range summary.Files {
		of, name, kind := &newest, f.Name, strings.Index(f.Name, companiesPrefix)
		if kind >= 0 {
			name = f.Name[:kind] + companiesPrefix + "*" + strings.TrimLeft(f.Name[kind:], "abcdefghijklmnopqrstuvwxyz-")
		}
		if strings.HasPrefix(f.Name, generate.OlderPrefix) {
			of = &older
		}
		if of.asOf = max(of.asOf, f.AsOf); !strings.Contains(of.files, "/"+name) {
			of.files += " " + forShell(c.Out) + "/" + name
		}
	}
	text := ""
	for _, r := range []release{newest, older} {
		if r.files != "" {
			text += "  regedge import --registry registry.db --as-of " + r.asOf + r.files + "\n"
		}
	}
	return text
}

// companiesPrefix begins the name of a registrar's file of companies.
const companiesPrefix = "companies-"

// forShell quotes a path for sh, bash, zsh and fish, where it needs that.
func forShell(path string) string {
	if plainPath.MatchString(path) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./@%+:,-]+$`)
