package importer

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRejectsReplaceNothingButRejects(t *testing.T) {
	w := newFixture(t)
	other, input := w.file("CIN,CompanyName\n"), w.file(headerA+rowA)
	linked, again := filepath.Join(w.folder, "linked"), filepath.Join(w.folder, "again")
	require.NoError(t, os.Symlink(input, linked))
	require.NoError(t, os.Link(input, again))
	w.run("2025-05-05", input)
	before := w.everything()
	for name, path := range map[string]string{
		"another file": other, "the input": input, "a symbolic link to the input": linked, "the input by another name": again,
		"the registry": w.registry, "the registry's log": w.registry + "-wal",
	} {
		t.Run(name, func(t *testing.T) {
			content, _ := os.ReadFile(path)
			config := w.config("2025-05-06", input)
			config.Rejects = path
			_, err := Run(context.Background(), config)
			require.ErrorContains(t, err, "name another file")
			after, _ := os.ReadFile(path)
			require.Equal(t, string(content), string(after))
			require.Equal(t, before, w.everything())
		})
	}
}

func TestRejectsReplaceEarlierOnes(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+"x"+rowA+"y"+rowA)
	require.Contains(t, w.rejected(), "y"+rowA[:20])
	w.text("2025-05-05", headerA+"z"+rowA)
	require.NotContains(t, w.rejected(), "y"+rowA[:20])
	require.Contains(t, w.rejected(), "z"+rowA[:20])
	require.NoError(t, os.Truncate(w.rejects, 0))
	w.text("2025-05-05", headerA+rowA)
	require.Equal(t, "file,line,reason,row\n", w.rejected())
}

func TestRejectsOfAnImportThatCouldNotBeginStay(t *testing.T) {
	w := newFixture(t)
	w.text("2025-05-05", headerA+"x"+rowA)
	before := w.rejected()
	config := w.config("2025-05-05", w.file(headerA+rowA))
	config.Registry = filepath.Join(w.folder, "none", "registry.db")
	_, err := Run(context.Background(), config)
	require.Error(t, err)
	require.Equal(t, before, w.rejected())
}
