package wasm_test

import (
	"bytes"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"

	"regedge/wasm"
	"regedge/wasm/labels"
)

// manifest has the keys of spin.toml that the service uses; any other key fails the test.
type manifest struct {
	Version     int `toml:"spin_manifest_version"`
	Application struct{ Name, Version, Description string }
	Variables   map[string]struct {
		Required, Secret bool
		Default          *string
	}
	Trigger struct {
		HTTP []struct{ Route, Component string }
	}
	Component map[string]struct {
		Source               string
		SQLiteDatabases      []string `toml:"sqlite_databases"`
		AllowedOutboundHosts []string `toml:"allowed_outbound_hosts"`
		Variables            map[string]string
		Build                struct {
			Command string
			Watch   []string
		}
	}
}

type runtimeConfig struct {
	SQLiteDatabase map[string]struct{ Type, URL, Token string } `toml:"sqlite_database"`
}

func decode[T any](t *testing.T, path string) T {
	t.Helper()
	var into T
	meta, err := toml.DecodeFile(path, &into)
	require.NoError(t, err)
	require.Empty(t, meta.Undecoded(), "unknown keys")
	return into
}

func databases() []string { return []string{labels.AccessDatabase, labels.RegistryDatabase} }

func variables() []string {
	return []string{labels.DocsURL, labels.MeterToken, labels.MeterURL}
}

func TestManifest(t *testing.T) {
	m := decode[manifest](t, "../spin.toml")
	require.Equal(t, 2, m.Version)
	require.Len(t, m.Component, 1)
	component := m.Component["registry"]

	t.Run("its one trigger sends /v1 to the component", func(t *testing.T) {
		require.Len(t, m.Trigger.HTTP, 1)
		require.Equal(t, "/v1/...", m.Trigger.HTTP[0].Route)
		require.Equal(t, "registry", m.Trigger.HTTP[0].Component)
	})
	t.Run("it names the committed component", func(t *testing.T) {
		file, err := os.ReadFile("../" + component.Source)
		require.NoError(t, err)
		require.True(t, bytes.Equal(file, wasm.Component))
	})
	t.Run("it grants the databases that the guest opens, and no other", func(t *testing.T) {
		require.ElementsMatch(t, databases(), component.SQLiteDatabases)
	})
	t.Run("it declares the variables that the guest reads, and no other", func(t *testing.T) {
		require.ElementsMatch(t, variables(), keys(m.Variables))
		for name, v := range m.Variables {
			require.True(t, v.Required, "%s has no useful default", name)
			require.Equal(t, name == labels.MeterToken, v.Secret, "secrecy of %s", name)
		}
	})
	t.Run("it passes each variable to the component by its name", func(t *testing.T) {
		require.ElementsMatch(t, variables(), keys(component.Variables))
		for name, template := range component.Variables {
			require.Equal(t, "{{ "+name+" }}", template)
		}
	})
	t.Run("it lets the component reach the meter, and nothing else", func(t *testing.T) {
		require.Equal(t, []string{"{{ " + labels.MeterURL + " }}"}, component.AllowedOutboundHosts)
	})
	t.Run("its build command exists", func(t *testing.T) {
		require.Equal(t, "sh wasm/build.sh", component.Build.Command)
		require.FileExists(t, "build.sh")
	})
}

func TestRuntimeConfigExample(t *testing.T) {
	config := decode[runtimeConfig](t, "../runtime-config.example.toml")
	require.ElementsMatch(t, databases(), keys(config.SQLiteDatabase))

	edge, err := os.ReadFile("../deploy/systemd/regedge-edge.service")
	require.NoError(t, err)
	var addresses []string
	for label, database := range config.SQLiteDatabase {
		require.Equal(t, "libsql", database.Type, label)
		require.Equal(t, "READ-ONLY-JWT-OF-"+strings.ToUpper(label), database.Token)
		require.Contains(t, string(edge), " --"+label+" "+database.URL+" ", "the replica that an edge of the same machine reads")
		address, err := url.Parse(database.URL)
		require.NoError(t, err)
		require.Equal(t, "127.0.0.1", address.Hostname(), label)
		addresses = append(addresses, address.Host)
	}
	slices.Sort(addresses)
	require.Len(t, slices.Compact(addresses), len(databases()), "each database has its own server")
}

// TestGuestUsesPackageLabels keeps literal labels out of the guest, where the tests above would
// miss them.
func TestGuestUsesPackageLabels(t *testing.T) {
	sources, err := os.ReadDir("guest")
	require.NoError(t, err)
	for _, source := range sources {
		if strings.HasSuffix(source.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile("guest/" + source.Name())
		require.NoError(t, err)
		for _, label := range append(databases(), variables()...) {
			require.NotContains(t, string(text), `"`+label+`"`, source.Name())
		}
	}
}

func keys[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return names
}
