package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"regedge/schema"
	"regedge/schema/generate"
)

// registry is a made-up registry of one size: its files and its database.
type registry struct {
	dataset
	companies   int
	current     []string // files of today
	older       []string // files of an earlier date
	pincodes    string
	sourceBytes int64 // of all files
	counts      map[string]int64
	names       []string // a sample of the registered names
}

// The dates of the generated files.
const (
	currentDay = "2025-05-05"
	olderDay   = "2021-03-31"
)

func (b *largeBench) registry(companies int) *registry {
	return &registry{companies: companies, dataset: dataset{dir: filepath.Join(b.dir, fmt.Sprint(companies)), program: b.program}}
}

// generate generates the files unless an earlier run has.
func (r *registry) generate(ctx context.Context) error {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	var made generate.Summary
	known, err := restore(r.path("made.json"), &made)
	if err != nil {
		return err
	}
	if !known {
		fmt.Fprintf(os.Stderr, "generating %d companies\n", r.companies)
		if made, err = generate.Run(ctx, generate.Config{
			Companies: r.companies, Seed: 1, Out: r.path("files"), Compress: generate.Plain, OlderShare: 0.1, Overwrite: true,
		}); err != nil {
			return err
		}
		if err := save(r.path("made.json"), made); err != nil {
			return err
		}
	}
	return r.sort(made)
}

// sort divides the files by date.
func (r *registry) sort(made generate.Summary) error {
	r.current, r.older, r.sourceBytes = nil, nil, 0
	for _, file := range made.Files {
		path := filepath.Join(r.path("files"), file.Name)
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		r.sourceBytes += info.Size()
		switch file.AsOf {
		case currentDay:
			r.current = append(r.current, path)
		case olderDay:
			r.older = append(r.older, path)
		default:
			r.pincodes = path
		}
	}
	return nil
}

// drop removes the database.
func (r *registry) drop() error {
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(r.path("registry.db") + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// look reads all CINs, a sample of the names, and the number of records of each kind.
func (r *registry) look() error {
	db, err := schema.OpenReadOnly(r.path("registry.db"))
	if err != nil {
		return err
	}
	defer db.Close()
	if r.cins, err = column(db, "SELECT cin FROM company"); err != nil {
		return err
	}
	const some = `SELECT coalesce(c.company_name, l.llp_name) FROM search_name n
		LEFT JOIN company c ON c.cin = n.value LEFT JOIN llp l ON l.llpin = n.value
		WHERE n.rowid / 16 % max(1, (SELECT companies FROM release ORDER BY seq DESC LIMIT 1) / 5000) = 0`
	if r.names, err = column(db, some); err != nil {
		return err
	}
	r.counts = map[string]int64{}
	for _, table := range []string{"company", "llp", "director", "appointment", "partner"} {
		var n int64
		name := strings.NewReplacer("company", "companies").Replace(table)
		if table != "company" {
			name += "s"
		}
		if err := db.QueryRow("SELECT " + name + " FROM release ORDER BY seq DESC LIMIT 1").Scan(&n); err != nil {
			return err
		}
		r.counts[table] = n
	}
	return nil
}
