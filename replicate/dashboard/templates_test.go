package dashboard

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// forms are the forms of all templates, by where they are.
func forms(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("pages/*.html")
	require.NoError(t, err)
	found, number := map[string][]string{}, 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, strings.Count(string(content), "<form"), strings.Count(string(content), "</form>"), file)
		found[file] = regexp.MustCompile(`(?s)<form.*?</form>`).FindAllString(string(content), -1)
		number += len(found[file])
	}
	require.Greater(t, number, 30)
	return found
}

// TestEachFormIsSentWhereItIsTaken: by a method and to a path that are served, and what changes something with the token of
// its session.
func TestEachFormIsSentWhereItIsTaken(t *testing.T) {
	content, err := os.ReadFile("routes.go")
	require.NoError(t, err)
	paths := map[string]string{"tokensPath": tokensPath, "webhookPath": webhookPath, "mailPath": mailPath}
	served := map[string]bool{}
	for _, route := range regexp.MustCompile(`r\.(GET|POST)\((\w+Path)?\+?(?:"([^"]*)")?,`).FindAllStringSubmatch(string(content), -1) {
		served[route[1]+" "+regexp.MustCompile(`:\w+`).ReplaceAllString(paths[route[2]]+route[3], ":")] = true
	}
	for file, list := range forms(t) {
		for _, form := range list {
			if strings.HasPrefix(form, `<form id="try-form"`) { // a script asks an edge
				continue
			}
			method := regexp.MustCompile(`^<form[^>]* method="(get|post)"`).FindStringSubmatch(form)
			require.NotNil(t, method, "%s: %s", file, form)
			require.Equal(t, method[1] == "post", strings.Contains(form, `{{template "token" call `), "%s: the token of a session is in what changes something, and in no address: %s", file, form)
			action := regexp.MustCompile(`^<form[^>]* action="([^"]*)"`).FindStringSubmatch(form)
			if action == nil || action[1] == "{{.Path}}" { // the path of the page itself
				continue
			}
			path := regexp.MustCompile(`\{\{[^}]*\}\}`).ReplaceAllString(action[1], ":")
			require.True(t, served[strings.ToUpper(method[1])+" "+path], "%s: nothing takes a %s to %s", file, method[1], path)
			require.Regexp(t, `<button[ >]`, form, "%s: %s", file, form)
		}
	}
}

// TestEachFieldSaysWhatItIs: it has a label that names it, its own id, and what a password manager goes by.
func TestEachFieldSaysWhatItIs(t *testing.T) {
	files, err := filepath.Glob("pages/*.html")
	require.NoError(t, err)
	parts, err := os.ReadFile("pages/parts.html")
	require.NoError(t, err)
	fields := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		page := string(content)
		for _, field := range regexp.MustCompile(`<(?:input|select|textarea)\b(?:\{\{[^}]*\}\}|[^>{])*>`).FindAllString(page, -1) {
			kind := regexp.MustCompile(`type="(\w+)"`).FindStringSubmatch(field)
			if kind != nil && kind[1] == "hidden" {
				require.NotContains(t, field, "id=", file)
				continue
			}
			fields++
			id := regexp.MustCompile(` id="([^"]+)"`).FindStringSubmatch(field)
			if id == nil { // within its label
				require.Regexp(t, `(?s)<label[^>]*>\s*`+regexp.QuoteMeta(field), page, "%s: %s", file, field)
				continue
			}
			require.Contains(t, page, `for="`+id[1]+`"`, "%s: %s", file, field)
			require.Equal(t, regexp.MustCompile(`autocomplete="(current|new)-password"`).MatchString(field), kind != nil && kind[1] == "password", "%s: %s", file, field)
			if !strings.Contains(field, " name=") && id[1] != "try-name" { // which a script reads
				require.Contains(t, field, "readonly", "%s: a field without a name is not sent: %s", file, field)
			}
		}
		for _, described := range regexp.MustCompile(`aria-(?:describedby|labelledby)="([^"{]+)"`).FindAllStringSubmatch(page, -1) {
			for id := range strings.FieldsSeq(described[1]) {
				require.Contains(t, page+string(parts), `id="`+id+`"`, file)
			}
		}
		for _, copied := range regexp.MustCompile(`data-copy="([^"]+)"`).FindAllStringSubmatch(page, -1) {
			require.Contains(t, page, `id="`+copied[1]+`"`, file)
			require.Regexp(t, `id="`+copied[1]+`-said" role="status"`, page, "%s: where it says that it was copied", file)
		}
	}
	require.Greater(t, fields, 25)
}
