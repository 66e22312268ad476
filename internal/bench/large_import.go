package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"regedge/internal/testkit"
)

// spent is the cost of an import.
type spent struct {
	length    time.Duration
	processor time.Duration
	memory    int64 // greatest resident set, in bytes
}

func (s spent) String() string {
	return fmt.Sprintf("%.0f s (%.0f s of processor time), %.0f MB", s.length.Seconds(), s.processor.Seconds(), float64(s.memory)/(1<<20))
}

func (s spent) plus(o spent) spent {
	return spent{s.length + o.length, s.processor + o.processor, max(s.memory, o.memory)}
}

// measureImport imports the large registry, then the same files and slightly changed ones again.
func (b *largeBench) measureImport(ctx context.Context) error {
	if err := b.large.generate(ctx); err != nil {
		return err
	}
	if !b.reuse {
		if err := b.importLarge(ctx); err != nil {
			return err
		}
		if err := b.verifyLarge(ctx); err != nil {
			return err
		}
	}
	if err := b.large.look(); err != nil {
		return err
	}
	info, err := os.Stat(b.large.path("registry.db"))
	if err != nil {
		return err
	}
	b.row("database size", "at most 2.5 bytes per byte of CSV", "%.2f bytes per byte (%.2f GB)",
		float64(info.Size())/float64(b.large.sourceBytes), float64(info.Size())/1e9)
	return nil
}

func (b *largeBench) importLarge(ctx context.Context) error {
	r := b.large
	if err := r.drop(); err != nil {
		return err
	}
	first, _, err := r.importAll(ctx)
	if err != nil {
		return err
	}
	b.row("full import into an empty database", "at most 360 s, under 512 MB", "%s", first)
	before, err := hashOf(r.path("registry.db"))
	if err != nil {
		return err
	}
	again, changed, err := r.importAll(ctx)
	if err != nil {
		return err
	}
	after, err := hashOf(r.path("registry.db"))
	if err != nil {
		return err
	}
	what := "every byte as before"
	if before != after || changed {
		what = "THE DATABASE CHANGED"
	}
	b.row("the same files again", fmt.Sprintf("at most %.0f s, no row written", first.length.Seconds()/3),
		"%s, %.2f of the first; %s", again, again.length.Seconds()/first.length.Seconds(), what)
	return b.importChanged(ctx, again)
}

// importChanged imports the current files with one row in a hundred changed.
func (b *largeBench) importChanged(ctx context.Context, again spent) error {
	r := b.large
	files, err := r.change()
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.path("changed"))
	took, changed, err := r.importFiles(ctx, currentDay, files)
	if err != nil {
		return err
	}
	if !changed {
		return errors.New("the changed files changed nothing")
	}
	b.row("1% of rows changed", "about the cost of reading", "%s, %.2f of the same files again", took, took.length.Seconds()/again.length.Seconds())
	return nil
}

// change copies the current files with a new value in one row of a hundred, which replaces the one in
// the database.
func (r *registry) change() (files []string, err error) {
	if err := os.MkdirAll(r.path("changed"), 0o755); err != nil {
		return nil, err
	}
	for _, path := range r.current {
		to := filepath.Join(r.path("changed"), filepath.Base(path))
		if err := changeRows(path, to); err != nil {
			return nil, err
		}
		files = append(files, to)
	}
	return files, nil
}

func changeRows(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	writer := bufio.NewWriterSize(out, 1<<20)
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	for n := 0; scanner.Scan(); n++ {
		line := scanner.Bytes()
		if n%100 == 50 {
			line = changed(line)
		}
		writer.Write(line)
		writer.WriteByte('\n')
	}
	return errors.Join(scanner.Err(), writer.Flush())
}

// changed returns a row with another value: a longer designation or name, or a city or address that
// sorts later.
func changed(line []byte) []byte {
	for _, one := range [][2]string{
		{"(MADE-UP)", "(MADE-UP) Z"}, {"Director", "Director Z"}, {" MADE-UP ROAD", " MADE-UP ROADZ"}, {"made-up-", "z-made-up-"},
	} {
		if bytes.Contains(line, []byte(one[0])) {
			return bytes.Replace(line, []byte(one[0]), []byte(one[1]), 1)
		}
	}
	return line
}

// importAll imports all files, each with its date, and reports whether anything changed. Contacts are
// imported twice, since some belong to companies that only the older files have.
func (r *registry) importAll(ctx context.Context) (total spent, changed bool, err error) {
	runs := []struct {
		asOf string
		args []string
	}{
		{currentDay, append([]string{"--pincodes", r.pincodes}, r.current...)},
		{olderDay, r.older},
		{currentDay, []string{filepath.Join(r.path("files"), "contacts.csv")}},
	}
	for _, run := range runs {
		took, one, err := r.importFiles(ctx, run.asOf, run.args)
		if err != nil {
			return total, changed, err
		}
		total, changed = total.plus(took), changed || one
	}
	return total, changed, nil
}

func (r *registry) importFiles(ctx context.Context, asOf string, args []string) (spent, bool, error) {
	fmt.Fprintf(os.Stderr, "importing %d companies as of %s\n", r.companies, asOf)
	took, output, err := r.runImport(ctx, append([]string{"--as-of", asOf}, args...)...)
	return took, !strings.Contains(output, "nothing changed"), err
}

// runImport runs regedge import on the database.
func (r *registry) runImport(ctx context.Context, args ...string) (took spent, said string, err error) {
	command := exec.CommandContext(ctx, r.program, append([]string{"import", "--registry", r.path("registry.db")}, args...)...)
	output := &testkit.Log{}
	command.Stdout, command.Stderr = output, output
	begin := time.Now()
	if err := command.Run(); err != nil {
		return took, "", fmt.Errorf("import: %w: %s", err, output)
	}
	state := command.ProcessState
	took = spent{length: time.Since(begin), processor: state.UserTime() + state.SystemTime()}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		took.memory = usage.Maxrss << 10 // Linux counts in KiB
	}
	return took, output.String(), nil
}

// verifyLarge verifies the registry as it is after the imports.
func (b *largeBench) verifyLarge(ctx context.Context) error {
	fmt.Fprintf(os.Stderr, "verifying %d companies\n", b.large.companies)
	took, _, err := b.large.runImport(ctx, "--verify")
	if err == nil {
		b.row("import --verify", "under 256 MB", "%s", took)
	}
	return err
}

var hashSeed = maphash.MakeSeed()

// hashOf is a hash of a file's content, comparable within this process.
func hashOf(path string) (uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	var hash maphash.Hash
	hash.SetSeed(hashSeed)
	if _, err := io.Copy(&hash, file); err != nil {
		return 0, err
	}
	return hash.Sum64(), nil
}
