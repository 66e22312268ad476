package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed switch.go.txt
var switchSource string

// build compiles the tests of a package with all mutants of p that can be switched. A mutant that
// does not compile loses its edits.
func build(p listed, s *suite, mutants []*mutant, work string) error {
	for range 20 {
		said, err := compile(p, s, mutants, work)
		if err == nil {
			return nil
		}
		if !dropFaulty(said, mutants, work) {
			return fmt.Errorf("build: %w\n%s", err, said)
		}
	}
	return fmt.Errorf("too many mutants do not compile")
}

func compile(p listed, s *suite, mutants []*mutant, work string) (said string, err error) {
	edits := map[string][]edit{}
	if slices.ContainsFunc(mutants, func(m *mutant) bool { return strings.HasPrefix(m.kind, "SQL") }) {
		for name, list := range p.variables {
			edits[name] = slices.Clone(list)
		}
	}
	for _, m := range mutants {
		edits[m.file] = append(edits[m.file], m.edits...)
	}
	replace := map[string]string{}
	for name, list := range edits {
		source, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return "", err
		}
		replace[filepath.Join(p.Dir, name)] = filepath.Join(work, name)
		if err := os.WriteFile(filepath.Join(work, name), []byte(apply(string(source), list)), 0o600); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(work, "switch.go"), []byte(strings.Replace(switchSource, "PACKAGE", p.Name, 1)), 0o600); err != nil {
		return "", err
	}
	replace[filepath.Join(p.Dir, "zz_mutants.go")] = filepath.Join(work, "switch.go")
	return testBinary(s.importPath, s.binary, replace, work)
}

func testBinary(importPath, binary string, replace map[string]string, work string) (said string, err error) {
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-gcflags=-e", "-overlay", path, "-o", binary, importPath).CombinedOutput()
	return string(out), err
}

var (
	faultAt = regexp.MustCompile(`(?m)([\w.-]+\.go):(\d+):(\d+): `)
	idAt    = regexp.MustCompile(`mutant(?:On|Not|Or|And|Both|Either|SQL)\((\d+)`)
)

// dropFaulty removes the edits of mutants on the lines that the compiler names.
func dropFaulty(said string, mutants []*mutant, work string) bool {
	byID := map[int]*mutant{}
	for _, m := range mutants {
		byID[m.id] = m
	}
	dropped := false
	for _, at := range faultAt.FindAllStringSubmatch(said, -1) {
		content, err := os.ReadFile(filepath.Join(work, filepath.Base(at[1])))
		if err != nil {
			continue
		}
		number, _ := strconv.Atoi(at[2])
		lines := strings.Split(string(content), "\n")
		for _, id := range idAt.FindAllStringSubmatch(lines[number-1], -1) {
			n, _ := strconv.Atoi(id[1])
			if m := byID[n]; m != nil && m.edits != nil {
				m.edits, dropped = nil, true
			}
		}
	}
	return dropped
}
