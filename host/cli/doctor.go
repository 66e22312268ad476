package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"regedge/host/doctor"
	"regedge/host/hint"
	"regedge/replicate/registry/sqld"
	"regedge/schema"
)

// doctorCommands say what is wrong with one service, or with all of this machine. The commands of a
// service take its own flags and variables.
type doctorCommands struct {
	Machine doctorMachine `cmd:"" default:"withargs" help:"All services that systemd runs on this machine, and the operator's own way to the writer."`
	Edge    doctorEdge    `cmd:"" help:"An edge, by the flags and variables of regedge edge."`
	Writer  doctorWriter  `cmd:"" help:"The writer, by the flags and variables of regedge writer."`
	Primary doctorPrimary `cmd:"" help:"A primary, by the flags and variables of regedge primary."`
	Replica doctorReplica `cmd:"" help:"A replica, by the flags and variables of regedge replica."`
	Meter   doctorMeter   `cmd:"" help:"A meter beside Spin, by the flags and variables of regedge meter."`
	Client  doctorClient  `cmd:"" help:"What operators' commands need, and how the nodes are."`
}

const doctorHelp = `Says what is configured, reached and trusted, how old it is and what ends when, and what to do
about each thing that is wrong. It changes nothing, and can run beside the service. It exits
with 1 when something is wrong, also when a certificate or a token ends within days.`

// doctorFlags are the flags of every doctor command.
type doctorFlags struct {
	Timeout time.Duration `env:"-" default:"5s" help:"How long an answer may take (${default})."`
}

// check refuses a timeout that is not positive.
func (f *doctorFlags) check() error {
	if f.Timeout <= 0 {
		return errors.New("--timeout must be positive")
	}
	return nil
}

func (f *doctorFlags) exam(m *Main, service string) *doctor.Exam {
	return &doctor.Exam{Service: service, Now: m.Now, Timeout: f.Timeout}
}

// examining says, when an examination takes long, that it goes on.
func (m *Main) examining(service string) (done func()) {
	return m.waiting("answers: the examination of the " + service + " goes on")
}

// printFlag chooses the output of the doctor commands that have no --json of their own.
type printFlag struct {
	JSON bool `env:"-" help:"Print JSON instead of lines."`
}

// diagnosis is the output in JSON.
type diagnosis struct {
	At       time.Time        `json:"at"`
	Version  string           `json:"version"`
	Wrong    int              `json:"wrong"`
	Findings []doctor.Finding `json:"findings"`
}

// tell prints findings. It returns an error when something is wrong, so that the command exits with 1.
func tell(m *Main, findings []doctor.Finding, asJSON bool) error {
	d := diagnosis{m.Now().UTC(), programVersion(), doctor.CountWrong(findings), findings}
	var err error
	if asJSON {
		err = printJSON(m.Stdout, d)
	} else {
		err = writeFindings(m.Stdout, findings)
	}
	if err == nil {
		err = areWrong(findings)
	}
	return err
}

// areWrong is an error when findings are wrong.
func areWrong(findings []doctor.Finding) error {
	switch wrong := doctor.CountWrong(findings); wrong {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("1 of %d findings is wrong", len(findings))
	default:
		return fmt.Errorf("%d of %d findings are wrong", wrong, len(findings))
	}
}

// writeFindings prints a line for each finding, and below it what to do.
func writeFindings(w io.Writer, findings []doctor.Finding) error {
	signs := map[doctor.Level]string{doctor.OK: "ok   ", doctor.Soon: "SOON ", doctor.Wrong: "WRONG"}
	for _, f := range findings {
		if _, err := fmt.Fprintf(w, "%s  %s: %s: %s\n", signs[f.Level], f.Service, f.What, shown(f.Found)); err != nil {
			return err
		}
		if f.Do != "" {
			fmt.Fprintf(w, "       do: %s\n", f.Do)
		}
	}
	return nil
}

type doctorEdge struct {
	edgeCommand
	doctorFlags
	printFlag
}

// Help is the text below the usage.
func (c *doctorEdge) Help() string { return doctorHelp }

// Validate refuses contradicting flags.
func (c *doctorEdge) Validate() error {
	return errors.Join(c.edgeCommand.Validate(), c.doctorFlags.check())
}

// Run examines an edge.
func (c *doctorEdge) Run(ctx context.Context, m *Main) error {
	defer m.examining("edge")()
	e := c.exam(m, "edge")
	noteKeys(e, c.TLSCert, c.TLSKey, c.TokenFile, c.RegistryTokenFile, c.AccessTokenFile)
	e.Ready(ctx, "edge", c.Listen, doctor.ReadyPath, c.TLSCert != "")
	if c.TLSCert != "" {
		e.Certificate("certificate for clients", c.TLSCert, c.TLSKey, "")
	}
	e.State(c.State)
	token, err := readToken(c.Token, c.TokenFile)
	noteTokenFile(e, err)
	e.Writer(ctx, c.Writer, token, doctor.EdgeToken)
	left := e.TokensLeft(ctx, c.Metrics)
	examineDatabase(ctx, e, databaseExam{
		database: schema.Registry, name: c.Registry, token: c.RegistryToken, tokenFile: c.RegistryTokenFile,
		replica: c.RegistryReplica, maxAge: c.MaxLag, left: left,
	})
	examineDatabase(ctx, e, databaseExam{
		database: schema.Access, name: c.Access, token: c.AccessToken, tokenFile: c.AccessTokenFile,
		replica: c.AccessReplica, maxAge: min(c.MaxLag, c.AccessMaxAge), left: left,
	})
	return tell(m, e.Findings, c.JSON)
}

// databaseExam is a database as a service's flags name it, and what is expected of it.
type databaseExam struct {
	database               schema.Database
	name, token, tokenFile string
	replica                string        // directory of the replica on this machine, empty for none
	maxAge                 time.Duration // of the copy at a libSQL server
	// left is how long the running service's tokens are still valid, by database; nil if unknown.
	left map[string]time.Duration
}

func examineDatabase(ctx context.Context, e *doctor.Exam, d databaseExam) {
	if !isRemote(d.name) {
		e.File(ctx, d.database, d.name, 0)
		return
	}
	token, err := readToken(d.token, d.tokenFile)
	noteTokenFile(e, err)
	good := true
	if renewed, known := d.left[string(d.database)]; known {
		good = e.Renewed(d.database, token, renewed)
	} else {
		e.Token(d.database, token)
	}
	if good {
		e.LibSQL(ctx, doctor.Server{Database: d.database, Address: d.name, Token: token, MaxAge: d.maxAge})
	}
	if d.replica != "" {
		e.File(ctx, d.database, sqld.File(d.replica), d.maxAge)
		e.Size("size of "+string(d.database), sqld.File(d.replica))
		e.Disk("disk of "+string(d.database), d.replica)
	}
}

type doctorWriter struct {
	writerCommand
	doctorFlags
	printFlag
}

// Help is the text below the usage.
func (c *doctorWriter) Help() string { return doctorHelp }

// Validate refuses contradicting flags.
func (c *doctorWriter) Validate() error {
	return errors.Join(c.writerCommand.Validate(), c.doctorFlags.check())
}

// Run examines a writer.
func (c *doctorWriter) Run(ctx context.Context, m *Main) error {
	defer m.examining("writer")()
	e := c.exam(m, "writer")
	noteKeys(e, c.TLSCert, c.TLSKey, c.TokenFile, c.DatabaseTokenFile, c.RegistryTokenFile, c.AccessTokenFile)
	e.OwnWriter(ctx, c.Listen, c.TLSCert != "")
	if c.TLSCert != "" {
		e.Certificate("certificate", c.TLSCert, c.TLSKey, "")
	}
	token, err := readToken(c.Token, c.TokenFile)
	noteTokenFile(e, err)
	if err == nil && token == "" {
		e.Wrong("operators' token", "make one, such as by openssl rand -hex 24, and give it as REGEDGE_TOKEN or --token-file", "there is none")
	}
	if !isRemote(c.Database) {
		e.Ledger(ctx, c.Database)
		e.Size("size of the ledger", c.Database)
		e.Disk("disk of the ledger", c.Database)
	}
	if c.Backup != "" {
		e.Backup(c.Backup)
	}
	examineDatabase(ctx, e, databaseExam{
		database: schema.Access, name: c.Access, token: c.AccessToken, tokenFile: c.AccessTokenFile, maxAge: heartbeatLate,
	})
	if c.Registry != "" {
		examineDatabase(ctx, e, databaseExam{
			database: schema.Registry, name: c.Registry, token: c.RegistryToken, tokenFile: c.RegistryTokenFile, maxAge: heartbeatLate,
		})
	}
	return tell(m, e.Findings, c.JSON)
}

// heartbeatLate is the age of a primary's heartbeat that shows that the writer does not write it.
const heartbeatLate = 30 * time.Second

type doctorPrimary struct {
	primaryCommand
	doctorFlags
	printFlag
}

// Help is the text below the usage.
func (c *doctorPrimary) Help() string { return doctorHelp }

// Validate refuses contradicting flags.
func (c *doctorPrimary) Validate() error {
	return errors.Join(c.primaryCommand.Validate(), c.doctorFlags.check())
}

// Run examines a primary.
func (c *doctorPrimary) Run(ctx context.Context, m *Main) error {
	defer m.examining("primary")()
	e := c.exam(m, "primary")
	noteKeys(e, c.JWTKey, c.CA, c.Cert, c.Key)
	noteSqld(e, c.Sqld)
	e.Answers(ctx, "queries", c.Listen)
	e.Certificate("certificate", c.Cert, c.Key, c.CA)
	e.Replication(ctx, "replication", c.Replication, c.CA, c.Cert, c.Key)
	e.Size("size", sqld.File(c.Dir))
	e.Disk("disk", c.Dir)
	return tell(m, e.Findings, c.JSON)
}

type doctorReplica struct {
	replicaCommand
	doctorFlags
	printFlag
	Database string        `enum:"registry,access," default:"" env:"-" help:"Which database it follows, registry or access, to look at its contents."`
	MaxLag   time.Duration `env:"REGEDGE_MAX_LAG" default:"10m" help:"How far behind it may be (${default})."`
}

// Help is the text below the usage.
func (c *doctorReplica) Help() string { return doctorHelp }

// Validate refuses contradicting flags.
func (c *doctorReplica) Validate() error {
	return errors.Join(c.replicaCommand.Validate(), c.doctorFlags.check())
}

// Run examines a replica.
func (c *doctorReplica) Run(ctx context.Context, m *Main) error {
	defer m.examining("replica")()
	e := c.exam(m, "replica")
	noteKeys(e, c.JWTKey, c.CA, c.Cert, c.Key)
	noteSqld(e, c.Sqld)
	e.Answers(ctx, "queries", c.Listen)
	if c.CA != "" {
		e.Certificate("certificate", c.Cert, c.Key, c.CA)
		e.Replication(ctx, "primary", c.Primary, c.CA, c.Cert, c.Key)
	} else {
		e.Answers(ctx, "primary", c.Primary)
	}
	if c.Database != "" {
		e.File(ctx, schema.Database(c.Database), sqld.File(c.Dir), c.MaxLag)
	}
	e.Size("size", sqld.File(c.Dir))
	e.Disk("disk", c.Dir)
	return tell(m, e.Findings, c.JSON)
}

type doctorMeter struct {
	meterCommand
	doctorFlags
	printFlag
}

// Help is the text below the usage.
func (c *doctorMeter) Help() string { return doctorHelp }

// Validate refuses contradicting flags.
func (c *doctorMeter) Validate() error {
	return errors.Join(c.meterCommand.Validate(), c.doctorFlags.check())
}

// Run examines a meter.
func (c *doctorMeter) Run(ctx context.Context, m *Main) error {
	defer m.examining("meter")()
	e := c.exam(m, "meter")
	noteKeys(e, c.TLSCert, c.TLSKey, c.TokenFile, c.MeterTokenFile)
	address := doctor.Dialable(c.Listen)
	if c.TLSCert != "" {
		address = "https://" + address
		e.Certificate("certificate", c.TLSCert, c.TLSKey, "")
	}
	e.Answers(ctx, "meter", address)
	if shared, err := readToken(c.MeterToken, c.MeterTokenFile); err != nil {
		noteTokenFile(e, err)
	} else if shared == "" {
		e.Wrong("meter token", "set REGEDGE_METER_TOKEN, or give --meter-token-file", "there is none")
	}
	e.State(c.State)
	token, err := readToken(c.Token, c.TokenFile)
	noteTokenFile(e, err)
	e.Writer(ctx, c.Writer, token, doctor.EdgeToken)
	return tell(m, e.Findings, c.JSON)
}

// noteKeys notes a signing key that this process can read. Root can read all.
func noteKeys(e *doctor.Exam, files ...string) {
	if os.Geteuid() == 0 {
		return
	}
	if err := refuseSigningKeys(files...); err != nil {
		e.Wrong("signing keys", hint.Of(err), "%v", err)
	}
}

func noteSqld(e *doctor.Exam, program string) {
	if _, err := exec.LookPath(program); err != nil {
		e.Wrong("sqld", "install it, or say where it is with --sqld", "there is no libSQL server: %v", err)
	}
}

func noteTokenFile(e *doctor.Exam, err error) {
	if err != nil {
		e.Wrong("token file", "let the user of the service read it", "%v", err)
	}
}
