package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"

	"regedge/host/hint"
	"regedge/replicate/metering/writer"
)

// environmentPrefix begins the name of every environment variable that stands for a
// flag: --access-max-age is REGEDGE_ACCESS_MAX_AGE.
const environmentPrefix = "REGEDGE"

// commands is the command line: one field a command, one file a command.
type commands struct {
	Dev      devCommand      `cmd:"" group:"run" help:"Run the whole service in one process, on files in a directory."`
	Edge     edgeCommand     `cmd:"" group:"run" help:"Run an edge node."`
	Meter    meterCommand    `cmd:"" group:"run" help:"Run the meter alone, beside Spin."`
	Primary  primaryCommand  `cmd:"" group:"run" help:"Run a libSQL primary, and let replication alone reach it."`
	Replica  replicaCommand  `cmd:"" group:"run" help:"Run a libSQL replica beside an edge, and repair it."`
	Writer   writerCommand   `cmd:"" group:"run" help:"Run the central writer, its API and the dashboard."`
	Import   importCommand   `cmd:"" group:"data" help:"Read official files into a registry database."`
	Push     pushCommand     `cmd:"" group:"data" help:"Bring a registry file to the registry's primary, by what differs."`
	Rollback rollbackCommand `cmd:"" group:"data" help:"Bring an earlier release back to the registry's primary."`
	Generate generateCommand `cmd:"" group:"data" help:"Write a made-up registry in the official formats."`
	Account  accountCommands `cmd:"" group:"customers" help:"Accounts: add, list, change, suspend, resume, invite."`
	Key      keyCommands     `cmd:"" group:"customers" help:"API keys: add, list, rename, expire, rotate, allow, limit, requests, revoke."`
	Plan     planCommands    `cmd:"" group:"customers" help:"Plans: add, list, change."`
	Credit   creditCommands  `cmd:"" group:"customers" help:"Credits: add, take, list, and charges in doubt."`
	Trust    trustCommands   `cmd:"" group:"cluster" help:"Keys and certificates of a cluster."`
	Node     nodeCommands    `cmd:"" group:"cluster" help:"Edge nodes: add, list, token, retire."`
	Status   statusCommand   `cmd:"" group:"watch" help:"Nodes, how far behind they are, and releases."`
	Doctor   doctorCommands  `cmd:"" group:"watch" help:"What is wrong on this machine, and what to do about it."`
	Probe    probeCommand    `cmd:"" group:"watch" help:"Ask a service of this machine whether it is ready."`
	Usage    usageCommand    `cmd:"" group:"watch" help:"Requests by account, key, endpoint and hour."`
	Audit    auditCommand    `cmd:"" group:"watch" help:"Who changed what and signed in when, newest first."`
	Version  versionCommand  `cmd:"" group:"watch" help:"Print the version."`

	Completion completionCommand `cmd:"" group:"watch" help:"Print the completion script of a shell."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Print what the last of some words may become."`
}

// groups are the headings of the commands in the help.
var groups = []kong.Group{
	{Key: "run", Title: "Run the service:"},
	{Key: "data", Title: "Bring the registry to the edges:"},
	{Key: "customers", Title: "Serve customers:"},
	{Key: "cluster", Title: "Build a cluster:"},
	{Key: "watch", Title: "Look:"},
}

const description = `Registry lookups for Indian companies, LLPs and directors.

A flag whose help ends in a variable can be given in the environment: --listen is ` + environmentPrefix + `_LISTEN.
The command line wins. The other flags are for the command line alone.`

// errHelpAsked says that the user asked for help.
var errHelpAsked = errors.New("help asked")

// parse reads the command line and returns the command to run. Any error is a misuse. Without arguments
// it shows the help.
func (m *Main) parse(args []string) (run func(context.Context) error, err error) {
	var line commands
	var help func(context.Context) error // as a command: it is not misuse when its reader has ended
	parser, err := kong.New(&line, append(slices.Clone(valueReaders),
		kong.Name("regedge"), kong.Description(description),
		kong.Writers(m.Stdout, m.Stderr), kong.DefaultEnvars(environmentPrefix),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(func(options kong.HelpOptions, of *kong.Context) error {
			help = func(context.Context) error { return kong.DefaultHelpPrinter(options, of) }
			return nil
		}),
		kong.Exit(func(int) { panic(errHelpAsked) }),
		kong.ExplicitGroups(groups), kong.Bind(m), kong.Vars{"default_plan": writer.DefaultPlan},
	)...)
	if err != nil {
		return nil, err
	}
	showExamples(parser.Model.Node)
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case errHelpAsked:
			run, err = help, nil
		default:
			panic(cause)
		}
	}()
	if err := m.checkEnvironment(parser.Model.Node); err != nil {
		return nil, err
	}
	switch {
	case len(args) == 0:
		args = []string{"--help"}
	case len(args) == 1 && slices.Contains([]string{"--version", "-version", "-V", "-v"}, args[0]):
		args = []string{"version"}
	case args[0] == "help": // as in help push
		args = append(slices.Clone(args[1:]), "--help")
	}
	if args, err = prepareArguments(args, parser.Model.Node); err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return nil, misuse(err)
	}
	if err := checkPaths(parsed); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		parsed.BindTo(ctx, (*context.Context)(nil))
		return parsed.Run()
	}, nil
}

// dryRun is the environment variable that --dry-run would have. It is refused: whoever sets it must not find
// that something was written after all.
var dryRun = variableOf("dry-run")

// checkEnvironment warns of variables with our prefix that do nothing. They may be misspelt, be named after a
// flag that takes no variable, or be set by a container platform for a service called regedge. It refuses
// dryRun.
func (m *Main) checkEnvironment(root *kong.Node) error {
	var known []string
	lineOnly := map[string]string{} // flags without a variable, by the name that it would have
	_ = kong.Visit(root, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known = append(known, flag.Envs...)
			lineOnly[variableOf(flag.Name)] = "--" + flag.Name
		}
		return next(nil)
	})
	var others []string
	for _, variable := range m.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if value == "" || !strings.HasPrefix(name, environmentPrefix+"_") || slices.Contains(known, name) {
			continue
		}
		if name == dryRun {
			return hint.With(fmt.Errorf("the environment variable %s stands for no flag: --dry-run is for the command line alone", name), "unset %s", name)
		}
		remark := nearest(name, known)
		if flag, ok := lineOnly[name]; ok {
			remark = fmt.Sprintf(" (%s is for the command line alone)", flag)
		}
		others = append(others, name+remark)
	}
	if len(others) > 0 {
		fmt.Fprintf(m.Stderr, "regedge: environment variables that stand for no flag are ignored: %s\n", strings.Join(others, ", "))
	}
	return nil
}

// nearest suggests a known variable that differs in at most two letters, or returns "".
func nearest(name string, known []string) string {
	for _, k := range known {
		if levenshtein.ComputeDistance(name, k) <= 2 {
			return " (did you mean " + k + "?)"
		}
	}
	return ""
}

// variableOf returns the environment variable that sets a flag, or would if it could.
func variableOf(flag string) string {
	return environmentPrefix + "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
