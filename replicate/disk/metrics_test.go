package disk

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// values are the gauges of a collector, by name and label.
func values(t *testing.T, of prometheus.Collector) map[string]float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(of)
	families, err := registry.Gather()
	require.NoError(t, err)
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			found[f.GetName()+" "+m.Label[0].GetValue()] = m.Gauge.GetValue()
		}
	}
	return found
}

func TestWhatIsKeptIsMeasured(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"file": 1000, "folder/a": 20, "folder/deeper/b": 3} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(dir, "file"), filepath.Join(dir, "folder", "link")))
	got := values(t, Metrics(Kept{Directories: map[string]string{"backup": dir}}, Kept{
		Directories: map[string]string{"state": dir, "gone": filepath.Join(dir, "gone")},
		Files: map[string]string{
			"file": filepath.Join(dir, "folder", "link"), "folder": filepath.Join(dir, "folder"), "gone": filepath.Join(dir, "gone"),
		},
	}))
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &s))
	require.Equal(t, float64(s.Blocks)*float64(s.Bsize), got["regedge_disk_size_bytes state"])
	require.InEpsilon(t, float64(s.Bavail)*float64(s.Bsize), got["regedge_disk_free_bytes state"], 0.2, "others write meanwhile")
	if s.Files > 0 {
		require.Equal(t, float64(s.Files), got["regedge_disk_files state"])
		require.InEpsilon(t, float64(s.Files-s.Ffree), float64(s.Files)-got["regedge_disk_free_files state"], 0.2, "others make files meanwhile")
	} else {
		require.NotContains(t, got, "regedge_disk_files state", "as btrfs, which counts none")
		require.NotContains(t, got, "regedge_disk_free_files state")
	}
	require.NotContains(t, got, "regedge_disk_free_bytes gone")
	require.Contains(t, got, "regedge_disk_free_bytes backup")
	require.Equal(t, 1000.0, got["regedge_stored_bytes file"], "also where a link leads to")
	require.Equal(t, 23.0, got["regedge_stored_bytes folder"], "all below it, but for links")
	require.Zero(t, got["regedge_stored_bytes gone"], "as a log that was not begun")
}

func TestTheRoomForFilesIsKnown(t *testing.T) {
	dir := t.TempDir()
	var want unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &want))
	got, err := Of(dir)
	require.NoError(t, err)
	require.EqualValues(t, want.Files, got.Files)
	require.LessOrEqual(t, got.FilesFree, got.Files)
	require.False(t, got.ReadOnly)
}
