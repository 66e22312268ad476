// Command mutants measures whether the tests of a package, and those of the packages named after it, notice
// mistakes in it. It takes a fraction of the time that gremlins needs: all mutants are compiled into one test
// binary, and a variable switches each one on. It makes the mutants that gremlins 0.6.0 makes. With -planted
// it makes mistakes as people make them: a statement or a check left out, arguments swapped, a function that
// returns at once, a changed sign or a lost condition in SQL. Each test runs alone first, to see which mutants
// it reaches; then each mutant runs the tests that reach it, the fastest first. Numeric constants can't be
// switched: their mutants are built one by one.
//
//	go run ./internal/mutants ./replicate/metering/ledger
//	go run ./internal/mutants -n 100 -planted 30 -seed 7 ./host/engine
//	go run ./internal/mutants ./schema/importer/load ./schema/importer
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	operators := flag.Int("n", 0, "how many changed operators, chosen at random (0 for all, -1 for none)")
	planted := flag.Int("planted", 0, "how many statements and checks that are left out, arguments that are swapped, and changes of SQL")
	seed := flag.Uint64("seed", 1, "of the choice")
	skip := flag.String("skip", "^$", "tests that are not run")
	only := flag.String("only", "", "mutants that are run, as FILE:LINE:COLUMN KIND, such as SQL for all of SQL")
	parallel := flag.Int("parallel", 1, "how many mutants at once, for tests that wait more than they compute")
	flag.Parse()
	if err := run(flag.Args(), *operators, *planted, *seed, *parallel, regexp.MustCompile(*skip), regexp.MustCompile(*only)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(folders []string, operators, planted int, seed uint64, parallel int, skip, only *regexp.Regexp) error {
	if len(folders) == 0 {
		return errors.New("name a package, such as ./handler/ident, and behind it others whose tests run too")
	}
	p, found, err := load(folders[0])
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	random := rand.New(rand.NewPCG(seed, seed))
	mutants := append(choose(random, found, false, operators, only), choose(random, found, true, max(planted, -1), only)...)
	r := &runner{p: p, work: work}
	for i, folder := range folders {
		s := &suite{binary: filepath.Join(work, strconv.Itoa(i)+".test")}
		if s.dir, s.importPath, err = locate(folder); err != nil {
			return err
		}
		if err := build(p, s, mutants, work); err != nil {
			return err
		}
		if err := s.learn(skip, work); err != nil {
			return err
		}
		r.suites = append(r.suites, s)
	}
	counts := map[bool]map[string]int{false: {}, true: {}}
	inOrder(parallel, mutants, r.try, func(m *mutant, o outcome) {
		counts[m.planted][o.result]++
		fmt.Printf("%-9s %-24s %s:%d:%d\t%s\t%s\n", o.result, m.kind, m.file, m.line, m.col, m.text, o.by)
	})
	fmt.Printf("%s: operators %v, planted %v\n", p.ImportPath, counts[false], counts[true])
	return nil
}

// choose picks n mutants of one sort at random; n = 0 means all of gremlins' sort and no planted ones.
func choose(random *rand.Rand, found []*mutant, planted bool, n int, only *regexp.Regexp) (list []*mutant) {
	for _, m := range found {
		if m.planted == planted && only.MatchString(fmt.Sprintf("%s:%d:%d %s", m.file, m.line, m.col, m.kind)) {
			list = append(list, m)
		}
	}
	if n == 0 && !planted {
		return list
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	list = list[:min(max(n, 0), len(list))]
	slices.SortFunc(list, func(a, b *mutant) int { return a.id - b.id })
	return list
}

// inOrder calls try for each mutant, with bounded concurrency, and show with the outcomes in the order of
// the mutants, each as early as possible.
func inOrder(atOnce int, mutants []*mutant, try func(*mutant) outcome, show func(*mutant, outcome)) {
	free, outcomes := make(chan struct{}, max(atOnce, 1)), make([]chan outcome, len(mutants))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	go func() {
		for i, m := range mutants {
			free <- struct{}{}
			go func() {
				outcomes[i] <- try(m)
				<-free
			}()
		}
	}()
	for i, m := range mutants {
		show(m, <-outcomes[i])
	}
}

// outcome is the result of the tests for a mutant, and which of them found it.
type outcome struct{ result, by string }

// runner runs tests against the mutants of a package.
type runner struct {
	p      listed
	work   string
	suites []*suite
}

// suite has the tests of a package.
type suite struct {
	dir, importPath, binary string
	tests                   []test // the fastest first
}

type test struct {
	name    string
	seconds float64
	reaches map[int]bool
}

// learn runs each test alone, and notes how long it takes and which mutants it reaches.
func (s *suite) learn(skip *regexp.Regexp, work string) error {
	cmd := exec.Command(s.binary, "-test.list", "^(Test|Fuzz|Example)")
	cmd.Dir = s.dir
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(out)) {
		if skip.MatchString(name) {
			continue
		}
		record := filepath.Join(work, "record")
		os.Remove(record)
		begun := time.Now()
		if out, err := s.start(s.binary, []string{name}, 5*time.Minute, "MUTANT_RECORD="+record); err != nil {
			fmt.Printf("without a mutant, %s fails:\n%s\n", name, out)
			continue
		}
		t := test{name: name, seconds: time.Since(begun).Seconds(), reaches: map[int]bool{}}
		ids, _ := os.ReadFile(record)
		for _, id := range strings.Fields(string(ids)) {
			n, _ := strconv.Atoi(id)
			t.reaches[n] = true
		}
		s.tests = append(s.tests, t)
	}
	slices.SortFunc(s.tests, func(a, b test) int { return cmp.Compare(a.seconds, b.seconds) })
	for _, t := range s.tests {
		fmt.Fprintf(os.Stderr, "%6.2f s %s\n", t.seconds, t.name)
	}
	return nil
}

func (s *suite) start(binary string, names []string, limit time.Duration, env ...string) (string, error) {
	cmd := exec.Command(binary, "-test.short", "-test.failfast", "-test.timeout="+limit.String(), "-test.run=^("+strings.Join(names, "|")+")$")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// try runs the tests of one package after the other until one notices the mutant.
func (r *runner) try(m *mutant) outcome {
	last := outcome{"UNREACHED", ""}
	for _, s := range r.suites {
		switch o := r.tryIn(s, m); o.result {
		case "UNREACHED":
		case "LIVED":
			last = o
		default:
			return o
		}
	}
	return last
}

// tryIn runs the tests of a package that reach a mutant, the fastest first, until one fails.
func (r *runner) tryIn(s *suite, m *mutant) outcome {
	binary := s.binary
	if m.edits == nil {
		if m.from == "" {
			return outcome{"UNUSABLE", ""}
		}
		var err error
		if binary, err = r.buildAlone(s, m); err != nil {
			return outcome{"UNUSABLE", ""}
		}
		defer os.RemoveAll(filepath.Dir(binary))
	}
	var names []string
	seconds, limit, reached := 0.0, 0.5, false
	for i, t := range s.tests {
		if m.edits == nil || t.reaches[m.id] {
			names, seconds, reached = append(names, t.name), seconds+t.seconds, true
		}
		if len(names) == 0 || seconds < limit && i+1 < len(s.tests) {
			continue
		}
		out, err := s.start(binary, names, time.Duration(20+10*seconds)*time.Second, "MUTANT="+strconv.Itoa(m.id))
		if err != nil {
			return verdict(out)
		}
		names, seconds, limit = nil, 0, limit*4
	}
	if !reached {
		return outcome{"UNREACHED", ""}
	}
	return outcome{"LIVED", ""}
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

func verdict(out string) outcome {
	if strings.Contains(out, "panic: test timed out") {
		return outcome{"TIMED OUT", ""}
	}
	if name := failed.FindStringSubmatch(out); name != nil {
		return outcome{"KILLED", name[1]}
	}
	return outcome{"KILLED", "crash"}
}

// buildAlone compiles a mutant of a constant.
func (r *runner) buildAlone(s *suite, m *mutant) (string, error) {
	source, err := os.ReadFile(filepath.Join(r.p.Dir, m.file))
	if err != nil {
		return "", err
	}
	changed := string(source[:m.offset]) + m.to + string(source[m.offset+len(m.from):])
	work, err := os.MkdirTemp(r.work, "alone")
	if err != nil {
		return "", err
	}
	path := filepath.Join(work, "alone.go")
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		return "", err
	}
	binary := filepath.Join(work, "alone.test")
	_, err = testBinary(s.importPath, binary, map[string]string{filepath.Join(r.p.Dir, m.file): path}, work)
	return binary, err
}
