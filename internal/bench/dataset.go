package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"regedge/internal/testkit"
	"regedge/replicate/metering/writer"
	"regedge/schema"
	"regedge/schema/generate"
	"regedge/schema/importer"
)

// accounts is the number of accounts, with one key each, that the load chooses from.
const accounts = 1000

// dataset is the databases that the subjects serve, and the CINs and keys that the load uses.
type dataset struct {
	dir      string
	program  string
	made     bool // the registry is made up
	cins     []string
	imported importTime
	keys     []string
	tokens   tokens
}

// importTime is the duration of an import of all files into an empty database.
type importTime struct {
	Rows   int64
	Length time.Duration
}

func (d *dataset) path(name string) string { return filepath.Join(d.dir, name) }

func (d *dataset) describe() string {
	source := "official"
	if d.made {
		source = "made-up (no official files here)"
	}
	if d.imported.Rows == 0 {
		return fmt.Sprintf("%d companies of an earlier run, %d keys", len(d.cins), len(d.keys))
	}
	return fmt.Sprintf("%d %s companies with made-up directors, %d keys; import of %d rows: %.2f s (%.0f rows/s)",
		len(d.cins), source, len(d.keys), d.imported.Rows, d.imported.Length.Seconds(),
		float64(d.imported.Rows)/d.imported.Length.Seconds())
}

// prepare builds the program, and the databases that do not exist yet.
func (o options) prepare(ctx context.Context) (*dataset, error) {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	set := &dataset{dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if set.program, err = testkit.BuildRegedge(ctx, dir); err != nil {
		return nil, err
	}
	if err := o.prepareRegistry(ctx, set); err != nil {
		return nil, fmt.Errorf("prepare registry: %w", err)
	}
	if err := set.prepareKeys(ctx); err != nil {
		return nil, fmt.Errorf("prepare keys: %w", err)
	}
	return set, nil
}

// prepareRegistry imports the companies into an empty database, in every run since the duration is one
// of the figures, and then made-up directors.
func (o options) prepareRegistry(ctx context.Context, set *dataset) (err error) {
	if o.reuse {
		set.cins, err = readCINs(set.path("registry.db"))
		return err
	}
	companies, pincodes, err := o.sources(ctx, set)
	if err != nil {
		return err
	}
	for _, old := range []string{"registry.db", "registry.db-wal", "registry.db-shm"} {
		if err := os.Remove(set.path(old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	begin := time.Now()
	report, err := importer.Run(ctx, importer.Config{
		Registry: set.path("registry.db"), Files: companies, Pincodes: pincodes, AsOf: "2025-05-05",
	})
	if err != nil {
		return err
	}
	set.imported = importTime{Rows: report.Total().Read, Length: time.Since(begin)}
	if set.cins, err = readCINs(set.path("registry.db")); err != nil {
		return err
	}
	if set.made {
		return nil // its directors are among its files
	}
	people, err := generate.Directors(ctx, generate.DirectorsConfig{CINs: set.cins, Seed: 1, Out: set.path("people"), Compress: generate.Plain, Overwrite: true})
	if err != nil {
		return err
	}
	_, err = importer.Run(ctx, importer.Config{
		Registry: set.path("registry.db"), Files: set.paths("people", people), AsOf: "2025-05-05",
	})
	return err
}

// sources finds the official files, or generates files for as many companies.
func (o options) sources(ctx context.Context, set *dataset) (companies, pincodes []string, err error) {
	companies, _ = filepath.Glob(filepath.Join(o.data, "companies/datagov-rocwise-2025/*.csv.gz"))
	pincodes, _ = filepath.Glob(filepath.Join(o.data, "pincodes/*.csv.gz"))
	if len(companies) > 0 {
		return companies, pincodes, nil
	}
	set.made = true
	made, err := generate.Run(ctx, generate.Config{Companies: o.companies, Seed: 1, Out: set.path("made"), Compress: generate.Plain, Overwrite: true})
	return set.paths("made", made), nil, err
}

func (d *dataset) paths(folder string, summary generate.Summary) []string {
	var paths []string
	for _, file := range summary.Files {
		paths = append(paths, filepath.Join(d.path(folder), file.Name))
	}
	return paths
}

func readCINs(registry string) ([]string, error) {
	db, err := schema.OpenReadOnly(registry)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return column(db, "SELECT cin FROM company")
}

func column(db *sql.DB, query string) (values []string, err error) {
	rows, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var value string
		if err := rows.Scan(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}

// save writes a value, such as the keys, to a file for the next run.
func save(path string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o600)
}

// restore reads the value of a file that save has written, and reports whether there is one.
func restore(path string, value any) (bool, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(content, value)
}

// tokens are the tokens and keys of the writer that the subjects share.
type tokens struct {
	Operator string
	Node     string
	Keys     []string
}

// benchPlan is a plan with limits that no load reaches.
var benchPlan = writer.Plan{
	ID: "bench", APIAccess: true, PerMinute: 1 << 40, MonthlyVolume: 1 << 40, Email: true, Phone: true,
}

// prepareKeys creates accounts with a key each, unless an earlier run has.
func (d *dataset) prepareKeys(ctx context.Context) error {
	known, err := restore(d.path("tokens.json"), &d.tokens)
	if err != nil {
		return err
	}
	d.keys = d.tokens.Keys
	if known {
		return nil
	}
	d.tokens.Operator = "bench-operator-token-of-this-directory"
	process, err := d.startWriter(ctx)
	if err != nil {
		return err
	}
	defer process.stop()
	client := writer.NewClient(process.url, d.tokens.Operator, nil)
	if err := d.makeAccounts(ctx, client); err != nil {
		return err
	}
	return save(d.path("tokens.json"), d.tokens)
}

func (d *dataset) makeAccounts(ctx context.Context, client *writer.Client) error {
	node, err := client.AddNode(ctx, "bench")
	if err != nil {
		return err
	}
	d.tokens.Node = node.Token
	if _, err := client.SetPlan(ctx, benchPlan); err != nil {
		return err
	}
	d.keys = make([]string, accounts)
	d.tokens.Keys = d.keys
	numbers := make(chan int)
	failures := make(chan error, accounts)
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for i := range numbers {
				key, err := makeKey(ctx, client, i)
				if err != nil {
					failures <- err
				}
				d.keys[i] = key
			}
		})
	}
	for i := range accounts {
		numbers <- i
	}
	close(numbers)
	wait.Wait()
	close(failures)
	return <-failures
}

// makeKey creates one account with more credits than a load can spend, and a key.
func makeKey(ctx context.Context, client *writer.Client, i int) (string, error) {
	account, err := client.AddAccount(ctx, fmt.Sprintf("bench-%d", i), "", benchPlan.ID)
	if err != nil {
		return "", err
	}
	if _, err := client.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: 1 << 40, Note: "bench"}); err != nil {
		return "", err
	}
	key, err := client.AddKey(ctx, account.ID, "bench")
	return key.Secret, err
}
