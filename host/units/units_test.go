package units

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine copies the units of deploy/systemd, with a folder of the test in place of /etc/regedge.
func machine(t *testing.T, environments map[string]string) (dir, etc string) {
	t.Helper()
	dir, etc = t.TempDir(), t.TempDir()
	files, err := filepath.Glob("../../deploy/systemd/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		text := strings.ReplaceAll(string(content), "/etc/regedge", etc)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), []byte(text), 0o600))
	}
	for name, text := range environments {
		require.NoError(t, os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600))
	}
	return dir, etc
}

func TestOnlyWhatAMachineRunsIsRead(t *testing.T) {
	dir, _ := machine(t, nil)
	list, err := Read(dir)
	require.NoError(t, err)
	require.Empty(t, list, "there is no environment file")

	list, err = Read(filepath.Join(dir, "missing"))
	require.NoError(t, err)
	require.Empty(t, list)
}

// TestALedgerIsShippedWhereTheUnitIsUsed, which is copied to every machine.
func TestALedgerIsShippedWhereTheUnitIsUsed(t *testing.T) {
	dir, _ := machine(t, nil)
	config, err := Shipping(dir)
	require.NoError(t, err)
	require.Empty(t, config)
	dir, etc := machine(t, map[string]string{"litestream.env": ""})
	config, err = Shipping(dir)
	require.NoError(t, err)
	require.Equal(t, etc+"/litestream.yml", config)

	dir, etc = t.TempDir(), t.TempDir()
	unit := "[Service]\nExecStart=/usr/bin/litestream replicate -config " + etc + "/own.yml\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-litestream.service"), []byte(unit), 0o600))
	config, err = Shipping(dir)
	require.NoError(t, err)
	require.Equal(t, etc+"/own.yml", config, "a unit that has no environment file at all")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-litestream.service"), []byte("[Service]\nExecStart=litestream replicate -config\n"), 0o600))
	config, err = Shipping(dir)
	require.NoError(t, err)
	require.Empty(t, config)
	for _, other := range []string{"", "litestream", "/usr/bin/litestream restore -config /x.yml", "/usr/bin/other replicate -config /x.yml"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-litestream.service"), []byte("[Service]\nExecStart="+other+"\n"), 0o600))
		config, err = Shipping(dir)
		require.NoError(t, err)
		require.Empty(t, config, other)
	}
	unused := "[Service]\nEnvironmentFile=" + etc + "/missing.env\nExecStart=/usr/bin/litestream replicate -config /x.yml\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-litestream.service"), []byte(unused), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-shipping.service"), []byte(unit), 0o600))
	config, err = Shipping(dir)
	require.NoError(t, err)
	require.Equal(t, etc+"/own.yml", config, "the unit that is used, after one that is not")
}

// TestAUnitThatCanNotBeReadIsAnError, for every reader.
func TestAUnitThatCanNotBeReadIsAnError(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "regedge-edge.service"), 0o700))
	_, err := Read(dir)
	require.ErrorContains(t, err, "read unit")
	_, err = Shipping(dir)
	require.ErrorContains(t, err, "read unit")
	_, err = Read("[")
	require.Error(t, err)
}

// TestATemplateHasAnInstanceForEachFileOfItsOwn, and none for one that all share.
func TestATemplateHasAnInstanceForEachFileOfItsOwn(t *testing.T) {
	dir, etc := t.TempDir(), t.TempDir()
	unit := "[Service]\nEnvironmentFile=" + etc + "/all.env\nEnvironmentFile=-" + etc + "/maybe.env\nEnvironmentFile=" + etc + "/edge-%i.env\nExecStart=/usr/bin/regedge edge\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-edge@.service"), []byte(unit), 0o600))
	for _, name := range []string{"all.env", "maybe.env", "edge-east.env", "edge-west.env"} {
		require.NoError(t, os.WriteFile(filepath.Join(etc, name), []byte("FROM="+name+"\n"), 0o600))
	}
	list, err := Read(dir)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, Service{Name: "regedge-edge@east", Instance: "east", Command: "edge", Environment: []string{"FROM=all.env", "FROM=maybe.env", "FROM=edge-east.env"}}, list[0])
	require.Equal(t, "regedge-edge@west", list[1].Name)
}

// TestAnEnvironmentThatCanNotBeReadIsAnError: only one that is missing means that the unit is not used.
func TestAnEnvironmentThatCanNotBeReadIsAnError(t *testing.T) {
	dir, etc := machine(t, nil)
	require.NoError(t, os.Mkdir(filepath.Join(etc, "edge.env"), 0o700))
	_, err := Read(dir)
	require.ErrorContains(t, err, "read the environment of regedge-edge")
}

// TestTheLastValueOfAVariableCounts, as for systemd and for the program.
func TestTheLastValueOfAVariableCounts(t *testing.T) {
	dir, etc := t.TempDir(), t.TempDir()
	unit := "[Service]\nEnvironmentFile=" + etc + "/edge.env\n;EnvironmentFile=/missing\nExecStart=/usr/bin/regedge edge --listen ${LISTEN} --name=${NAME} $ONCE\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-edge.service"), []byte(unit), 0o600))
	for _, once := range []string{"--restored", "--take-over"} { // flags for a single start
		environment := "LISTEN=:1\nLISTEN=:2\n;LISTEN=:3\n#LISTEN=:4\nNAME='5\"\nONCE=" + once + "\n"
		require.NoError(t, os.WriteFile(filepath.Join(etc, "edge.env"), []byte(environment), 0o600))
		list, err := Read(dir)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []string{"--listen", ":2", "--name='5\""}, list[0].Arguments)
	}
}

func TestServicesAreReadWithTheirEnvironment(t *testing.T) {
	dir, etc := machine(t, map[string]string{
		"edge.env":             "# comment\n#A=b\n;C=d\nno value\n REGEDGE_TOKEN='a b'\nREGEDGE_LISTEN = \"0.0.0.0:443\"\nREGEDGE_METRICS=x=y\nOPEN=\"\n",
		"writer.env":           "WRITER_ONCE=--restored\n",
		"primary-registry.env": "SQLD_HTTP_LISTEN_ADDR=127.0.0.1:8181\n",
		"primary-access.env":   "",
		"renew.env":            "REGEDGE_TOKEN=other\n",
		"litestream.env":       "",
	})
	list, err := Read(dir)
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.Equal(t, []string{"regedge-primary@access", "regedge-primary@registry", "regedge-writer", "regedge-edge"},
		[]string{list[0].Name, list[1].Name, list[2].Name, list[3].Name})

	registry := list[1]
	require.Equal(t, "registry", registry.Instance)
	require.Equal(t, []string{"SQLD_HTTP_LISTEN_ADDR=127.0.0.1:8181"}, registry.Environment)
	require.Equal(t, []string{"--sqld", "/usr/local/bin/sqld", "--dir", "/var/lib/regedge/primary-registry",
		"--jwt-key", etc + "/trust/registry.pub", "--tls-ca", etc + "/trust/ca.crt",
		"--tls-cert", etc + "/trust/primary.crt", "--tls-key", etc + "/trust/primary.key"}, registry.Arguments, "credentials by their source")

	require.NotContains(t, list[2].Arguments, "--restored", "a flag for a single start")
	require.Equal(t, []string{"REGEDGE_TOKEN=a b", "REGEDGE_LISTEN=0.0.0.0:443", "REGEDGE_METRICS=x=y", `OPEN="`}, list[3].Environment)
	require.Contains(t, list[3].Arguments, "/var/lib/regedge/replica-access")
}

// TestServicesOfUnitsComeBack: a service that ends or hangs is restarted without limit, and its files are for
// its own user.
func TestServicesOfUnitsComeBack(t *testing.T) {
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join("../../deploy/systemd", name))
		require.NoError(t, err)
		return string(content)
	}
	says := func(name string, lines ...string) {
		for _, line := range lines {
			require.Contains(t, read(name), "\n"+line+"\n", name)
		}
	}
	files, err := filepath.Glob("../../deploy/systemd/*.service")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		says(name, "UMask=0077")
		unit := read(name)
		for _, wanted := range regexp.MustCompile(`(?m)^Wants=(.*)$`).FindAllStringSubmatch(unit, -1) {
			says(name, "After="+wanted[1])
		}
		made := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindStringSubmatch(unit)
		for _, used := range regexp.MustCompile(` /var/lib/(regedge/[a-z%-]+)`).FindAllStringSubmatch(unit, -1) {
			require.NotNil(t, made, name)
			require.Contains(t, strings.Fields(made[1]), used[1], name)
		}
		if name == "regedge-renew.service" { // by its timer
			continue
		}
		says(name, "StartLimitIntervalSec=0", "Restart=always", "RestartSec=1", "StateDirectoryMode=0700", "WantedBy=multi-user.target")
		if name != "regedge-litestream.service" { // which says nothing of itself
			says(name, "Type=notify", "WatchdogSec=1min", "TimeoutStartSec=10min")
		}
	}
	says("regedge-renew.timer", "OnBootSec=5min", "OnUnitActiveSec=12h", "WantedBy=timers.target")
	for _, name := range []string{"edge", "meter"} {
		says("regedge-"+name+".service", "InaccessiblePaths=-/etc/regedge/trust")
	}
	for _, name := range []string{"edge", "meter", "primary@", "replica@"} {
		says("regedge-"+name+".service", "LimitNOFILE=65536")
	}
	for _, name := range []string{"primary@", "replica@"} { // regedge asks its sqld to end itself
		says("regedge-"+name+".service", "KillMode=mixed")
	}
}
