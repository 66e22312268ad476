package units

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

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

// TestAnEnabledUnitIsUsedWithoutItsEnvironment, which systemd does not start then.
func TestAnEnabledUnitIsUsedWithoutItsEnvironment(t *testing.T) {
	dir, etc := machine(t, map[string]string{"replica-access.env": "A=b\n"})
	wants := filepath.Join(dir, "multi-user.target.wants")
	require.NoError(t, os.Mkdir(wants, 0o700))
	for _, name := range []string{"regedge-edge.service", "regedge-replica@access.service", "regedge-replica@registry.service"} {
		unit, _, at := strings.Cut(name, "@")
		if at {
			unit += "@.service"
		}
		require.NoError(t, os.Symlink(filepath.Join(dir, unit), filepath.Join(wants, name)))
	}
	list, err := Read(dir)
	require.NoError(t, err)
	missing := map[string]string{}
	for _, s := range list {
		missing[s.Name] = s.Missing
	}
	require.Equal(t, map[string]string{
		"regedge-edge": etc + "/edge.env", "regedge-replica@access": "", "regedge-replica@registry": etc + "/replica-registry.env",
	}, missing)

	optional := "[Service]\nEnvironmentFile=-" + etc + "/missing.env\nExecStart=/usr/bin/regedge edge --state s\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-edge.service"), []byte(optional), 0o600))
	list, err = Read(dir)
	require.NoError(t, err)
	require.Equal(t, Service{Name: "regedge-edge", Command: "edge", Arguments: []string{"--state", "s"}}, list[len(list)-1], "one that may be missing")
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

// TestATemplateHasAnInstanceForEachFileOfItsOwn, one also where it is enabled, and none for one that all share.
func TestATemplateHasAnInstanceForEachFileOfItsOwn(t *testing.T) {
	dir, etc := t.TempDir(), t.TempDir()
	unit := "[Service]\nEnvironmentFile=" + etc + "/all.env\nEnvironmentFile=-" + etc + "/maybe.env\nEnvironmentFile=" + etc + "/edge-%i.env\nExecStart=/usr/bin/regedge edge\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-edge@.service"), []byte(unit), 0o600))
	for _, name := range []string{"all.env", "maybe.env", "edge-east.env", "edge-west.env"} {
		require.NoError(t, os.WriteFile(filepath.Join(etc, name), []byte("FROM="+name+"\n"), 0o600))
	}
	wants := filepath.Join(dir, "multi-user.target.wants")
	require.NoError(t, os.Mkdir(wants, 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "regedge-edge@.service"), filepath.Join(wants, "regedge-edge@east.service")))
	list, err := Read(dir)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, Service{Name: "regedge-edge@east", Instance: "east", Command: "edge", Environment: []string{"FROM=all.env", "FROM=maybe.env", "FROM=edge-east.env"}}, list[0])
	require.Equal(t, "regedge-edge@west", list[1].Name)
}

// TestAFileThatMayBeMissingIsFoundWhereItIs: its name begins with a sign that is not of the path.
func TestAFileThatMayBeMissingIsFoundWhereItIs(t *testing.T) {
	dir, etc := t.TempDir(), t.TempDir()
	write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(filepath.Join(dir, "regedge-edge@.service"), "[Service]\nEnvironmentFile=-"+etc+"/edge-%i.env\nExecStart=/usr/bin/regedge edge\n")
	write(filepath.Join(dir, "regedge-litestream.service"), "[Service]\nEnvironmentFile=-"+etc+"/litestream.env\nExecStart=/usr/bin/litestream replicate -config /x.yml\n")
	config, err := Shipping(dir)
	require.NoError(t, err)
	require.Empty(t, config, "the unit is not used here")
	write(filepath.Join(etc, "edge-east.env"), "A=b\n")
	write(filepath.Join(etc, "litestream.env"), "")
	list, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, []Service{{Name: "regedge-edge@east", Instance: "east", Command: "edge", Environment: []string{"A=b"}}}, list)
	config, err = Shipping(dir)
	require.NoError(t, err)
	require.Equal(t, "/x.yml", config)
}

// TestTheLastCommandOfAUnitCounts: an empty command before it takes back the commands of the unit that it was copied from.
func TestTheLastCommandOfAUnitCounts(t *testing.T) {
	dir := t.TempDir()
	unit := "[Service]\nExecStart=/usr/bin/litestream replicate -config /old.yml\nExecStart=\nExecStart=/usr/bin/litestream replicate -config /new.yml\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-litestream.service"), []byte(unit), 0o600))
	config, err := Shipping(dir)
	require.NoError(t, err)
	require.Equal(t, "/new.yml", config)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-edge.service"), []byte("[Service]\nExecStart=/usr/bin/regedge writer\nExecStart=\nExecStart=/usr/bin/regedge edge\n"), 0o600))
	list, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, []Service{{Name: "regedge-edge", Command: "edge"}}, list)
}

// TestALineThatIsCommentedOutIsNoPartOfACommand, also in its middle (systemd.syntax(7)); and an empty value takes back the files before it.
func TestALineThatIsCommentedOutIsNoPartOfACommand(t *testing.T) {
	dir := t.TempDir()
	unit := "# ExecStart=/usr/bin/regedge writer \\\nEnvironmentFile=/missing\nEnvironmentFile=\nExecStart=/usr/bin/regedge edge --listen :1 \\\n" +
		"  # --tls-cert x \\\n; --tls-key y \\\n  --state s\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "regedge-edge.service"), []byte(unit), 0o600))
	list, err := Read(dir)
	require.NoError(t, err)
	require.Equal(t, []Service{{Name: "regedge-edge", Command: "edge", Arguments: []string{"--listen", ":1", "--state", "s"}}}, list)
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

// TestServicesOfAMachineWorkTogether: each database has its own files, keys and addresses, and every reader or writer of
// it is pointed at these.
func TestServicesOfAMachineWorkTogether(t *testing.T) {
	dir, etc := machine(t, map[string]string{
		"edge.env": "", "writer.env": "",
		"primary-registry.env": "", "primary-access.env": "", "replica-registry.env": "", "replica-access.env": "",
	})
	list, err := Read(dir)
	require.NoError(t, err)
	given := map[string]map[string]string{}
	for _, s := range list {
		require.NotContains(t, s.Arguments, "", "%s: a variable that is not set is no argument", s.Name)
		given[s.Name] = map[string]string{}
		for i := 0; i+1 < len(s.Arguments); i += 2 {
			given[s.Name][s.Arguments[i]] = s.Arguments[i+1]
		}
	}
	const state = "/var/lib/regedge/"
	edge, writer := given["regedge-edge"], given["regedge-writer"]
	for database, port := range map[string]string{"registry": "81", "access": "82"} {
		primary, replica := given["regedge-primary@"+database], given["regedge-replica@"+database]
		require.Equal(t, map[string]string{
			"--sqld": "/usr/local/bin/sqld", "--dir": state + "primary-" + database, "--jwt-key": etc + "/trust/" + database + ".pub",
			"--tls-ca": etc + "/trust/ca.crt", "--tls-cert": etc + "/trust/primary.crt", "--tls-key": etc + "/trust/primary.key",
		}, primary)
		require.Equal(t, map[string]string{
			"--sqld": "/usr/local/bin/sqld", "--dir": state + "replica-" + database, "--jwt-key": etc + "/trust/" + database + "-replica.pub",
			"--tls-ca": etc + "/trust/ca.crt", "--tls-cert": etc + "/trust/edge.crt", "--tls-key": etc + "/trust/edge.key",
		}, replica)
		require.Equal(t, "http://127.0.0.1:81"+port, writer["--"+database])
		require.Equal(t, "http://127.0.0.1:82"+port, edge["--"+database])
		require.Equal(t, replica["--dir"], edge["--"+database+"-replica"])
		for kind, listen := range map[string]string{"primary": "127.0.0.1:81", "replica": "127.0.0.1:82"} { // of the registry
			content, err := os.ReadFile(filepath.Join(dir, "regedge-"+kind+"@.service"))
			require.NoError(t, err)
			require.Contains(t, string(content), "#   SQLD_HTTP_LISTEN_ADDR="+listen+"81\n", kind)
		}
	}
	require.Equal(t, state+"edge", edge["--state"])
	shipping, err := os.ReadFile("../../deploy/litestream/litestream.yml")
	require.NoError(t, err)
	require.Contains(t, string(shipping), "\n  - path: "+writer["--database"]+"\n", "the ledger that is shipped")
}

// TestUnitsKeepWhatTheServiceNeedsAlone: its own directories, the key beside its certificate, and memory in which no
// other program's code can be put. All give up the same rights.
func TestUnitsKeepWhatTheServiceNeedsAlone(t *testing.T) {
	files, err := filepath.Glob("../../deploy/systemd/*.service")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	givenUp := regexp.MustCompile(`(?m)^(?:Ambient|Capability|Lock|NoNew|Private|Protect|RemoveIPC|Restrict|SystemCall)\w*=.*$`)
	var first []string
	for _, file := range files {
		name := filepath.Base(file)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		unit := string(content)
		rights := givenUp.FindAllString(unit, -1)
		if first == nil {
			first = rights
		}
		require.Len(t, rights, 25, name)
		require.ElementsMatch(t, first, rights, "%s gives up what every unit does", name)
		if name != "regedge-edge.service" { // where the component is compiled
			require.Contains(t, unit, "\nMemoryDenyWriteExecute=yes\n", name)
		}
		require.Contains(t, unit, "\nSystemCallErrorNumber=EPERM\n", "%s: a call that is refused ends no process", name)
		require.Regexp(t, `(?m)^EnvironmentFile=/etc/regedge/[a-z%-]+\.env$`, unit, "%s: without its environment it does not run", name)
		soft := regexp.MustCompile(`(?m)^Environment=GOMEMLIMIT=(\d+)MiB$`).FindStringSubmatch(unit)
		if soft == nil {
			continue
		}
		hard := regexp.MustCompile(`(?m)^MemoryMax=(\d+)([MG])$`).FindStringSubmatch(unit)
		require.NotNil(t, hard, name)
		limit, err := strconv.Atoi(hard[1])
		require.NoError(t, err)
		most, err := strconv.Atoi(soft[1])
		require.NoError(t, err)
		require.Less(t, most, limit*map[string]int{"M": 1, "G": 1024}[hard[2]], "%s collects garbage before its memory ends", name)
	}
	for name, line := range map[string]string{
		"regedge-edge.service":       `ReadWritePaths=/var/lib/regedge`, // a replica's directory may be made anew
		"regedge-litestream.service": `ReadWritePaths=-/srv/regedge-ledger`,
		"regedge-writer.service":     `  --access \S+ --registry \S+ \$WRITER_ONCE`,
	} {
		content, err := os.ReadFile(filepath.Join("../../deploy/systemd", name))
		require.NoError(t, err)
		require.Regexp(t, `(?m)^`+line+`$`, string(content), name)
	}
	for _, name := range []string{"litestream", "renew"} { // the others read /proc/sys: the backlog of a socket, the boot
		content, err := os.ReadFile("../../deploy/systemd/regedge-" + name + ".service")
		require.NoError(t, err)
		require.Contains(t, string(content), "\nProcSubset=pid\n", name)
	}
	litestream, err := os.ReadFile("../../deploy/systemd/regedge-litestream.service")
	require.NoError(t, err)
	require.Contains(t, string(litestream), "\nStateDirectory=regedge/writer\n", "it reads and checkpoints the ledger's log")
}

// TestTheLedgersCopyIsAsNewAndOldAsPromised: it lacks a second at most, reaches back as far as an edge can report again,
// goes to the standby that is meant, and what ships it says so where it is asked.
func TestTheLedgersCopyIsAsNewAndOldAsPromised(t *testing.T) {
	content, err := os.ReadFile("../../deploy/litestream/litestream.yml")
	require.NoError(t, err)
	duration := func(setting string) time.Duration {
		t.Helper()
		found := regexp.MustCompile(`(?m)^ +` + setting + `: (\S+)$`).FindStringSubmatch(string(content))
		require.NotNil(t, found, setting)
		d, err := time.ParseDuration(found[1])
		require.NoError(t, err)
		return d
	}
	require.Less(t, duration("monitor-interval")+duration("sync-interval"), time.Second)
	require.Equal(t, 7*24*time.Hour, duration("retention"), "for as long as edges keep what they have reported")
	require.Regexp(t, `(?m)^snapshot:\n  interval: 1h$`, string(content))
	require.Regexp(t, `(?m)^shutdown-sync-timeout: 5s `, string(content), "a machine whose standby is full shuts down in time")
	require.Regexp(t, `(?m)^validation:.*\n  interval: 30s$`, string(content))
	require.Regexp(t, `(?m)^      host-key: \$\{LEDGER_HOST_KEY\}$`, string(content), "another machine can't stand in for the standby")
	require.Regexp(t, `(?m)^addr: 127\.0\.0\.1:9093\b`, string(content))
	guide, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	require.Contains(t, string(guide), "Scrape `127.0.0.1:9093` as job `litestream`")
}

// TestEachLineOfAUnitIsInItsSection: systemd passes over one that is in another, with no more than a warning.
func TestEachLineOfAUnitIsInItsSection(t *testing.T) {
	files, err := filepath.Glob("../../deploy/systemd/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotRegexp(t, `\\[ \t]+\n`, string(content), "%s: a line that goes on ends with its sign", name)
		section, sections := "", []string{}
		for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", " ")) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "[") {
				section = line
				sections = append(sections, line)
			}
			key, _, ok := strings.Cut(line, "=")
			if strings.HasPrefix(line, "#") || !ok {
				continue
			}
			want := map[string]string{"Description": "[Unit]", "After": "[Unit]", "Wants": "[Unit]", "StartLimitIntervalSec": "[Unit]", "WantedBy": "[Install]"}[key]
			if want == "" {
				want = map[bool]string{true: "[Timer]", false: "[Service]"}[strings.HasSuffix(name, ".timer")]
			}
			require.Equal(t, want, section, "%s: %s", name, line)
		}
		want := []string{"[Unit]", "[Service]", "[Install]"}
		switch name {
		case "regedge-renew.service":
			want = want[:2] // its timer is what starts it
		case "regedge-renew.timer":
			want[1] = "[Timer]"
		}
		require.Equal(t, want, sections, name)
		require.Regexp(t, `(?m)^Description=regedge: `, string(content), name)
	}
}

// TestUnitsStartWhatTheyNeed, and run what they are called after, within the memory that is planned for a machine.
func TestUnitsStartWhatTheyNeed(t *testing.T) {
	const replicas = "regedge-replica@registry.service regedge-replica@access.service"
	const primaries = "regedge-primary@registry.service regedge-primary@access.service"
	for name, lines := range map[string][]string{
		"edge":       {"Wants=" + replicas, "MemoryMax=2G", "Environment=GOMEMLIMIT=1536MiB", "ExecStart=/usr/local/bin/regedge edge "},
		"writer":     {"Wants=" + primaries, "MemoryMax=1G", "Environment=GOMEMLIMIT=768MiB", "ExecStart=/usr/local/bin/regedge writer "},
		"meter":      {"MemoryMax=512M", "Environment=GOMEMLIMIT=384MiB", "ExecStart=/usr/local/bin/regedge meter --state /var/lib/regedge/meter"},
		"primary@":   {"Wants=network-online.target", "MemoryMax=2G", "Environment=RUST_LOG=warn", "ExecStart=/usr/local/bin/regedge primary "},
		"replica@":   {"Wants=network-online.target", "MemoryMax=2G", "Environment=RUST_LOG=warn", "ExecStart=/usr/local/bin/regedge replica "},
		"litestream": {"Wants=regedge-writer.service", "MemoryMax=512M", "ExecStart=/usr/local/bin/litestream replicate -config /etc/regedge/litestream.yml"},
		"renew":      {"After=regedge-writer.service", "MemoryMax=512M", "ExecStart=/usr/local/bin/regedge trust renew --trust /etc/regedge/trust"},
	} {
		content, err := os.ReadFile("../../deploy/systemd/regedge-" + name + ".service")
		require.NoError(t, err)
		for _, line := range lines {
			require.Contains(t, string(content), "\n"+line, name)
		}
	}
	content, err := os.ReadFile("../../deploy/systemd/regedge-writer.service")
	require.NoError(t, err)
	command, err := os.ReadFile("../cli/main.go")
	require.NoError(t, err)
	held := regexp.MustCompile(`(?m)^\texitHeld += (\d+)`).FindSubmatch(command)
	require.NotNil(t, held)
	require.Contains(t, string(content), "\nRestartPreventExitStatus="+string(held[1])+"\n", "a writer that another has taken over from does not take it back")
}

// TestTheLedgerIsShippedToTheStandby by SFTP, as the user, with the key and into the directory that the guide names.
func TestTheLedgerIsShippedToTheStandby(t *testing.T) {
	content, err := os.ReadFile("../../deploy/litestream/litestream.yml")
	require.NoError(t, err)
	require.Regexp(t, `(?s)\ndbs:\n  - path: .*\n    replica:\n      `, string(content))
	for _, line := range []string{"type: sftp", `host: \$\{LEDGER_HOST\} +# \S+:22`, "user: regedge-ledger", "key-path: /etc/regedge/ledger-key", "path: /srv/regedge-ledger"} {
		require.Regexp(t, `(?m)^      `+line+`$`, string(content))
	}
	guide, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	for _, said := range []string{"/etc/regedge/ledger-key", "/srv/regedge-ledger", "regedge-ledger"} {
		require.Contains(t, string(guide), said)
	}
}
