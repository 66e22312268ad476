package regedge_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"regedge/internal/testkit"
)

// documents returns the text of every document, by its path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	return testkit.Texts(t, "*.md", "docs/*.md", "clients/*.md", "clients/*/README.md")
}

var (
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	headings = regexp.MustCompile(`(?m)^#+ (.+)$`)
	linked   = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	// cited is a section of a document, by its title in quotes.
	cited = regexp.MustCompile(`\b([A-Za-z-]+\.md)\)?, "([^"]+)"`)
	// bold begins a paragraph that has a title of its own.
	bold = regexp.MustCompile(`(?m)^(?:[0-9]+\. |- | *)\*\*([^*]+?)\.?\*\*`)
)

// titles returns the titles of a document's sections.
func titles(text string) (list []string) {
	for _, heading := range headings.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		list = append(list, strings.ReplaceAll(heading[1], "`", ""))
	}
	return list
}

// anchor returns the address of a section within its page.
func anchor(title string) string {
	dropped := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(dropped, " ", "-")
}

// TestLinksOfDocumentsLeadSomewhere: to a file that is there, and a section that it has.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	texts, found := documents(t), 0
	for file, text := range texts {
		for _, link := range linked.FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			found++
			path, section, hasSection := strings.Cut(link[1], "#")
			target := filepath.Join(filepath.Dir(file), path)
			if path == "" {
				target = file
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", file, link[1])
			if hasSection {
				var anchors []string
				for _, title := range titles(texts[target]) {
					anchors = append(anchors, anchor(title))
				}
				require.Contains(t, anchors, section, "%s links to %s", file, link[1])
			}
		}
	}
	require.Greater(t, found, 40)
}

// TestCitedSectionsExist: those that documents and comments name by the title.
func TestCitedSectionsExist(t *testing.T) {
	texts, found := documents(t), 0
	sections := map[string][]string{}
	for file, text := range texts {
		sections[filepath.Base(file)] = append(sections[filepath.Base(file)], titles(text)...)
		for _, paragraph := range bold.FindAllStringSubmatch(text, -1) {
			sections[filepath.Base(file)] = append(sections[filepath.Base(file)], paragraph[1])
		}
	}
	comment := regexp.MustCompile(`\n\s*(?://|#|--|\*) ?`)
	for _, file := range sourceFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, section := range cited.FindAllStringSubmatch(comment.ReplaceAllString(string(content), " "), -1) {
			document, title := section[1], strings.Join(strings.Fields(section[2]), " ")
			if document == "README.md" || strings.Contains(title, "%") {
				continue // there are many of that name
			}
			found++
			require.Contains(t, sections[document], title, "%s cites %s", file, document)
		}
	}
	require.Greater(t, found, 60)
}

// TestNamedTargetsOfMakeExist, and the targets that `make` alone prints are those that the documents describe.
func TestNamedTargetsOfMakeExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[target[1]] = true
	}
	found := 0
	for file, text := range documents(t) {
		for _, named := range regexp.MustCompile("(?m)(?:`|^ {4,}|&& )make ([a-z-]+)").FindAllStringSubmatch(text, -1) {
			found++
			require.True(t, targets[named[1]], "%s: make %s", file, named[1])
		}
	}
	require.Greater(t, found, 40)
	phony := regexp.MustCompile(`(?m)^\.PHONY:(.*)$`).FindStringSubmatch(string(makefile))
	require.NotNil(t, phony)
	for _, target := range strings.Fields(phony[1]) {
		require.True(t, targets[target], target)
	}
	for target := range targets {
		require.Regexp(t, `(?m)^`+target+`:.* ## \S`, string(makefile), "make alone prints it")
		require.Contains(t, strings.Fields(phony[1]), target, "it makes no file of its name")
	}
}

// TestNamedMetricsAreMeasured: a dashboard or an alarm that somebody copies from a document would stay empty.
func TestNamedMetricsAreMeasured(t *testing.T) {
	var source strings.Builder
	for _, file := range sourceFiles(t) {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			source.Write(content)
		}
	}
	measured, found := source.String(), 0
	for file, text := range documents(t) {
		for _, metric := range regexp.MustCompile(`\bregedge_[a-z_]+[a-z]\b`).FindAllString(text, -1) {
			found++
			require.Contains(t, measured, `"`+metric+`"`, file)
		}
	}
	require.Greater(t, found, 60)
}

// TestNamedUnitsAndFilesOfDeployExist, as do scripts: people copy the commands of the documents.
func TestNamedUnitsAndFilesOfDeployExist(t *testing.T) {
	units, err := filepath.Glob("deploy/systemd/*")
	require.NoError(t, err)
	services := map[string]bool{}
	for _, unit := range units {
		name := strings.TrimSuffix(filepath.Base(unit), ".service")
		services[strings.TrimSuffix(name, "@")] = true
	}
	found := 0
	for file, text := range documents(t) {
		if file == "CHANGELOG.md" {
			continue // files of earlier versions
		}
		for _, named := range regexp.MustCompile(`\b(?:deploy|scripts)/[A-Za-z0-9_./@-]*[A-Za-z0-9]`).FindAllString(text, -1) {
			if named == "deploy/compose/secrets" {
				continue // setup.sh makes it
			}
			found++
			_, err := os.Stat(named)
			require.NoError(t, err, file)
		}
		for _, call := range regexp.MustCompile(`\b(?:systemctl|journalctl) [^\n;|)]*`).FindAllString(text, -1) {
			for _, unit := range regexp.MustCompile(`\bregedge-[a-z]+(?:\.timer)?`).FindAllString(call, -1) {
				found++
				require.True(t, services[unit], "%s: %s", file, call)
			}
		}
	}
	require.Greater(t, found, 50)
}

// TestTheReadmeKnowsTheSizeOfTheComponent, to a tenth of a megabyte.
func TestTheReadmeKnowsTheSizeOfTheComponent(t *testing.T) {
	component, err := os.Stat("wasm/registry.wasm")
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), fmt.Sprintf("WebAssembly component of %.1f MB", float64(component.Size())/1e6))
}

// TestNamedIdentifiersExist: what documents name as package.Name is declared in a package of that name, and there is each test,
// benchmark and fuzz target that they name.
func TestNamedIdentifiersExist(t *testing.T) {
	declared, all, found := map[string]string{}, "", 0
	for _, file := range sourceFiles(t) {
		if filepath.Ext(file) == ".go" {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			if name := regexp.MustCompile(`(?m)^package (\w+)$`).FindSubmatch(content); name != nil {
				declared[string(name[1])] += string(content)
			}
			all += string(content)
		}
	}
	for file, text := range documents(t) {
		for _, named := range regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w+)`").FindAllStringSubmatch(text, -1) {
			if source, ours := declared[named[1]]; ours {
				found++
				declares := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |const |var |\s+)` + named[2] + `\b`)
				require.True(t, declares.MatchString(source), "%s: %s", file, named[0])
			}
		}
		for _, named := range regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w+)`").FindAllStringSubmatch(text, -1) {
			found++
			require.True(t, strings.Contains(all, "\nfunc "+named[1]+"("), "%s: %s", file, named[0])
		}
	}
	require.Greater(t, found, 30)
}

// TestWhatStandsBesideAFileIsInIt: where documents say `file.go`, `name`, that file has the name.
func TestWhatStandsBesideAFileIsInIt(t *testing.T) {
	found := 0
	for document, text := range documents(t) {
		for _, pair := range regexp.MustCompile("`(\\w+/[\\w/]+\\.go)`,\\s`(\\w+)`(?:\\sand\\s`(\\w+)`)?").FindAllStringSubmatch(text, -1) {
			source, err := os.ReadFile(pair[1])
			require.NoError(t, err, document)
			for _, name := range pair[2:] {
				if name != "" {
					found++
					require.Regexp(t, `\b`+name+`\b`, string(source), "%s: %s", document, pair[0])
				}
			}
		}
	}
	require.Greater(t, found, 10)
}

// TestAMeterReachesTheWriterAsAnEdgeDoes, by the environment that the guide gives each.
func TestAMeterReachesTheWriterAsAnEdgeDoes(t *testing.T) {
	guide, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	given := map[string]string{}
	for _, found := range regexp.MustCompile(`(?s)cat > /etc/regedge/(\w+)\.env <<END\n(.*?)\nEND\n`).FindAllStringSubmatch(string(guide), -1) {
		given[found[1]] = found[2]
	}
	for _, variable := range []string{"REGEDGE_WRITER", "REGEDGE_TOKEN", "SSL_CERT_FILE"} {
		line := regexp.MustCompile(`(?m)^` + variable + `=.+$`).FindString(given["edge"])
		require.NotEmpty(t, line, variable)
		require.Contains(t, strings.Split(given["meter"], "\n"), line)
	}
}
