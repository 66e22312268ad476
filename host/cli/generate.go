package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

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

// Run writes the files and lists them.
func (c *generateCommand) Run(ctx context.Context, m *Main) error {
	bar := newProgress(m.Stderr, "generating", "records")
	summary, err := generate.Run(ctx, generate.Config{
		Companies: c.Companies, Seed: c.Seed, Out: c.Out, Compress: generate.Compression(c.Compress),
		OlderShare: c.OlderShare, Overwrite: c.Force, Progress: bar.set,
	})
	bar.finish()
	if errors.Is(err, generate.ErrExists) {
		return hint.With(err, "--out takes another folder, --force replaces what is there")
	}
	if err != nil {
		return err
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

// imports are the commands that import the files: those of the older format have a date of their own.
func (c *generateCommand) imports(summary generate.Summary) string {
	older, newest := "", ""
	for _, f := range summary.Files {
		newest = max(newest, f.AsOf)
		if strings.HasPrefix(f.Name, "companies-2021-") {
			older = f.AsOf
		}
	}
	command := func(asOf string, patterns ...string) string {
		line := "  regedge import --registry registry.db --as-of " + asOf
		for _, pattern := range patterns {
			line += " " + filepath.Join(c.Out, pattern) + map[string]string{"none": ".csv", "gzip": ".csv.gz", "zstd": ".csv.zst"}[c.Compress]
		}
		return line + "\n"
	}
	// Without [!…]: to zsh an exclamation mark is a command of its history.
	text := command(newest, "[abd-z]*", "contacts", "companies-[a-z]*")
	if older != "" {
		text = command(older, "companies-2021-*") + text
	}
	return text
}
