package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"regedge/host/doctor"
	"regedge/host/units"
)

type doctorMachine struct {
	Units string `type:"path" default:"/etc/systemd/system" env:"-" placeholder:"DIR" help:"Where the units of this machine are (${default})."`
	doctorFlags
	printFlag
}

// Help is the text below the usage.
func (c *doctorMachine) Help() string {
	return doctorHelp + `

Each unit is read with its environment file, as root can. Where there is none, or REGEDGE_WRITER is
set, the way of the operators' commands to the writer is looked at. In a container, give the name of
the service: regedge doctor edge takes the flags and variables of regedge edge.`
}

// Validate refuses contradicting flags.
func (c *doctorMachine) Validate() error { return c.doctorFlags.check() }

// Run examines each service by a process of its own, which has the environment of that service.
func (c *doctorMachine) Run(ctx context.Context, m *Main) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	services, err := units.Read(c.Units)
	if err != nil {
		return err
	}
	var findings []doctor.Finding
	for _, s := range services {
		findings = append(findings, c.examine(ctx, m, program, s)...)
	}
	shipped, err := c.examineStandby(ctx, m, services)
	if err != nil {
		return err
	}
	findings = append(findings, shipped...)
	own := m.Environ()
	if len(services) == 0 || hasVariable(own, environmentPrefix+"_WRITER") {
		findings = append(findings, c.examine(ctx, m, program, units.Service{Name: "client", Command: "client", Environment: own})...)
	}
	if ctx.Err() != nil { // what was interrupted says nothing of the services
		return ctx.Err()
	}
	return tell(m, findings, c.JSON)
}

// examineStandby checks whether the ledger of this machine is shipped. It needs no service's environment.
func (c *doctorMachine) examineStandby(ctx context.Context, m *Main, services []units.Service) ([]doctor.Finding, error) {
	config, err := units.Shipping(c.Units)
	if err != nil {
		return nil, err
	}
	writer := slices.IndexFunc(services, func(s units.Service) bool { return s.Command == "writer" })
	e := c.exam(m, "litestream")
	switch {
	case config != "":
		e.Standby(ctx, config)
	case writer >= 0 && services[writer].Missing == "":
		e.Service = "writer"
		e.NoStandby(hasVariable(services[writer].Environment, environmentPrefix+"_BACKUP"))
	}
	return e.Findings, nil
}

// passedOn are the variables of this process that the examination of a service needs.
var passedOn = []string{"PATH", "HOME", "TMPDIR"}

// Examining one service may take examineLimit times the timeout of an answer, since several of its checks may run into
// it, and examineOwn more to start and to watch for a sign of life.
const examineLimit, examineOwn = 30, 5 * time.Second

// examine runs the examination of one service in a process of its own, so that a file that hangs, as on a network disk,
// does not hide what is found about the other services.
func (c *doctorMachine) examine(ctx context.Context, m *Main, program string, s units.Service) []doctor.Finding {
	if s.Missing != "" {
		e := &doctor.Exam{Service: serviceName(s, s.Command)}
		e.Wrong("configuration", "bring it back, or make it again (docs/operations.md); else systemctl disable "+s.Name,
			"its unit is enabled, and %s is missing, without which systemd does not start it", s.Missing)
		return e.Findings
	}
	defer m.examining(serviceName(s, s.Command))()
	args := append([]string{"doctor", s.Command}, s.Arguments...)
	args = append(args, "--json", "--timeout", c.Timeout.String())
	if s.Command == "replica" && s.Instance != "" {
		args = append(args, "--database", s.Instance)
	}
	limit := examineOwn + examineLimit*c.Timeout
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(limited, program, args...)
	for _, name := range passedOn {
		command.Env = append(command.Env, name+"="+os.Getenv(name))
	}
	command.Env = append(command.Env, s.Environment...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	ended := make(chan error, 1)
	go func() { ended <- command.Run() }()
	var err error
	select {
	case err = <-ended:
	case <-limited.Done(): // the process was killed, but waits for a disk and does not end
		if ctx.Err() != nil {
			return nil
		}
		e := &doctor.Exam{Service: serviceName(s, s.Command)}
		e.Wrong("examination", "what hangs? A disk (dmesg, iostat), a network disk, or a pipe in place of a file; ps shows a D for who waits for a disk", "it did not end within %v: a file that it reads hangs", limit)
		return e.Findings
	}
	var found diagnosis
	if json.Unmarshal(stdout.Bytes(), &found) != nil {
		e := &doctor.Exam{Service: serviceName(s, s.Command)}
		e.Wrong("configuration", "look at its unit and its environment file", "%v: %s", err, strings.ReplaceAll(strings.TrimSpace(stderr.String()), "\n", "; "))
		return e.Findings
	}
	for i := range found.Findings {
		found.Findings[i].Service = serviceName(s, found.Findings[i].Service)
	}
	return found.Findings
}

// serviceName is the name of a service in a list: COMMAND@INSTANCE for a template's unit, else found.
func serviceName(s units.Service, found string) string {
	if s.Instance != "" {
		return fmt.Sprintf("%s@%s", s.Command, s.Instance)
	}
	return found
}

func hasVariable(environment []string, name string) bool {
	for _, variable := range environment {
		if key, value, _ := strings.Cut(variable, "="); key == name && value != "" {
			return true
		}
	}
	return false
}
