package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutantVariable names in the environment the number of the mutant that is switched on, from 1.
const mutantVariable = "SIMULATION_MUTANT"

// switchFile is added to each package that has mutants.
const switchFile = `package %s

import (
	"os"
	"strconv"
)

var mutantOn, _ = strconv.Atoi(os.Getenv("` + mutantVariable + `"))
`

// TestTheSimulationFindsMutants breaks the code and expects the simulation to see it.
// All mutants are in one program.
func TestTheSimulationFindsMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped with -short: runs the simulation once for every mutant")
	}
	program := buildMutants(t)
	out, err := simulateMutant(program, 0, *steps)
	require.NoError(t, err, "without a mutant:\n%s", out)
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out, err := simulateMutant(program, i+1, cmp.Or(m.steps, *steps))
			require.Error(t, err, "the simulation passes")
			_, found, _ := strings.Cut(out, "-run TestSeed -seed ")
			require.NotEmpty(t, found, "not found in %d seeds:\n%s", mutantSeeds, out[max(0, len(out)-4000):])
			t.Logf("found by seed %s", strings.Fields(found)[0])
		})
	}
}

// simulateMutant runs the simulation with a mutant, of a number from 1, and returns what it printed. With
// 0 there is none, and few runs.
func simulateMutant(program string, number, steps int) (string, error) {
	seeds := mutantSeeds
	if number == 0 {
		seeds = 20
	}
	run := exec.Command(program, "-test.run=^TestSeeds$", "-test.timeout=5m", "-seeds", strconv.Itoa(seeds), "-from", strconv.Itoa(*firstRun), "-steps", strconv.Itoa(steps))
	run.Env = append(os.Environ(), mutantVariable+"="+strconv.Itoa(number))
	out, err := run.CombinedOutput()
	if err != nil {
		out = append(out, err.Error()...)
	}
	return string(out), err
}

// buildMutants builds the simulation with all mutants. Beside each function that a mutant changes stands a
// copy with the change, which the function calls first of all when the mutant is on.
func buildMutants(t *testing.T) string {
	marks := findMarks(t)
	var edits []edit
	added := map[string]string{}
	named := map[edit]bool{} // the parameters that have got a name
	for i, m := range mutants {
		at := *marks[m.name]
		at.t = t
		fn := at.function()
		copied := at.copyOf(fn, m.edits(t, marks), fmt.Sprintf("%sMutant%d", fn.Name.Name, i+1))
		call, names := at.callOf(fn, fmt.Sprintf("%sMutant%d", fn.Name.Name, i+1))
		edits = append(edits, at.insert(fn.Body.Lbrace+1, fmt.Sprintf("\nif mutantOn == %d {\n%s\n}\n", i+1, call))...)
		edits = append(edits, at.insert(fn.End(), "\n\n"+copied+"\n")...)
		for _, n := range names {
			if !named[n[0]] {
				named[n[0]] = true
				edits = append(edits, n...)
			}
		}
		added[filepath.Join(filepath.Dir(at.path), "zz_mutants.go")] = fmt.Sprintf(switchFile, at.file.Name.Name)
	}
	program := filepath.Join(t.TempDir(), "mutants.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay(t, edits, added), "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// copyOf is the text of a function with edits, under another name.
func (m *mark) copyOf(fn *ast.FuncDecl, edits []edit, name string) string {
	begin, end := int(fn.Pos()-m.base), int(fn.End()-m.base)
	var moved []edit
	for _, e := range append(edits, m.replace(fn.Name, name)...) {
		require.True(m.t, e.file == m.path && begin <= e.from && e.to <= end, "%s: it changes more than one function", m.name)
		e.from, e.to = e.from-begin, e.to-begin
		moved = append(moved, e)
	}
	return apply(m.source[begin:end], moved)
}

// callOf is a call of a function's copy with the same arguments, as the last statement, and the edits that name
// parameters without a name.
func (m *mark) callOf(fn *ast.FuncDecl, name string) (call string, named [][]edit) {
	var arguments []string
	for _, field := range fn.Type.Params.List {
		require.NotEmpty(m.t, field.Names, "%s: a parameter without a name", m.name)
		for _, n := range field.Names {
			argument := n.Name
			if argument == "_" {
				argument = fmt.Sprintf("unnamed%d", len(arguments))
				named = append(named, m.replace(n, argument))
			}
			if _, variadic := field.Type.(*ast.Ellipsis); variadic {
				argument += "..."
			}
			arguments = append(arguments, argument)
		}
	}
	if fn.Recv != nil {
		name = fn.Recv.List[0].Names[0].Name + "." + name
	}
	call = name + "(" + strings.Join(arguments, ", ") + ")"
	if fn.Type.Results != nil {
		return "return " + call, named
	}
	return call + "\nreturn", named
}

// apply makes edits in a text.
func apply(text string, edits []edit) string {
	// From the end, so that offsets stay right; of two edits at one offset, the later in the
	// list stands later in the text.
	edits = slices.Clone(edits)
	slices.Reverse(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text
}

// overlay writes edited copies of files, and new ones, and the list for the flag -overlay that puts them
// in the place of the originals.
func overlay(t *testing.T, edits []edit, added map[string]string) string {
	byFile := map[string][]edit{}
	for _, e := range edits {
		byFile[e.file] = append(byFile[e.file], e)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	put := func(file, source string) {
		replace[file] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		require.NoError(t, os.WriteFile(replace[file], []byte(source), 0o600))
	}
	for file, list := range byFile {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		put(file, apply(string(content), list))
	}
	for file, source := range added {
		put(file, source)
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, list, 0o600))
	return path
}
