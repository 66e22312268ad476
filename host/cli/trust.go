package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"regedge/host/hint"
	"regedge/host/pki"
)

// trustCommands create the keys, tokens and certificates by which the machines of a cluster
// authenticate.
type trustCommands struct {
	Init    trustInit    `cmd:"" help:"Make the keys of a new cluster: a key pair for each database, and an authority for replication."`
	Token   trustToken   `cmd:"" help:"Print a token for a database's libSQL servers."`
	Machine trustMachine `cmd:"" help:"Make a machine's certificate for replication."`

	Renew    trustRenew    `cmd:"" help:"Make new tokens for the replicas of every edge, and pass them on through the writer."`
	Operator trustOperator `cmd:"" help:"Tokens for the operators' commands and for scraping the writer: add, list, end."`
}

// trustFlags name the folder.
type trustFlags struct {
	Trust string `default:"trust" type:"path" placeholder:"DIR" help:"Directory of the keys; keep it at the centre, and safe (${default})."`
}

type trustInit struct {
	trustFlags
	Yes bool `env:"-" help:"Do not ask before keys are replaced. Needed where there is no terminal to ask at."`
}

// Run makes the keys. Where there are some already, it asks before it replaces them.
func (c *trustInit) Run(ctx context.Context, m *Main) error {
	made, err := pki.Create(c.Trust, m.Now)
	if errors.Is(err, pki.ErrExists) && !errors.Is(err, pki.ErrMeanwhile) {
		opened, failed := openTrust(c.Trust, m)
		if failed != nil {
			return failed
		}
		if added, err := c.complete(opened, m); added || err != nil {
			return err
		}
		made, err = c.replace(ctx, opened, m)
	}
	if err != nil {
		return err
	}
	for _, database := range pki.Databases {
		fmt.Fprintf(m.Stdout, "%s primary: --jwt-key %s, replicas: --jwt-key %s\n", database, made.PrimaryKeyFile(database), made.ReplicaKeyFile(database))
	}
	_, err = fmt.Fprintf(m.Stdout, "replication: authority %s\n", made.AuthorityFile())
	return err
}

// replace makes new keys in place of all that are there, if that is confirmed.
func (c *trustInit) replace(ctx context.Context, opened *pki.Trust, m *Main) (*pki.Trust, error) {
	machines, err := opened.Machines()
	if err != nil {
		return nil, err
	}
	aside, missing := opened.Aside(), "No key is missing there."
	if names := opened.Missing(); len(names) > 0 {
		missing = strings.Join(names, ", ") + " is missing there: if there is a copy, put it back instead."
	}
	err = m.confirm(ctx, c.Yes, fmt.Sprintf("Replace the authority and the %s in %s? %s %s and all tokens of the databases will be refused: every primary, replica, edge and writer has to get new ones. The old directory is kept as %s.",
		count(int64(len(pki.SigningKeys)-1), "key pair"), c.Trust, missing, count(int64(len(machines)), "machine certificate"), aside))
	if err != nil {
		return nil, err
	}
	made, err := opened.Replace(aside)
	if err == nil {
		fmt.Fprintf(m.Stdout, "Replaced. The old keys and certificates are in %s.\n", aside)
	}
	return made, err
}

// complete makes what a directory lacks and can be made without replacing a key. This is what can be derived from the
// keys, if a run was killed before it made that or somebody deleted it, and the replicas' keys, if the directory is
// older than these.
func (c *trustInit) complete(opened *pki.Trust, m *Main) (added bool, err error) {
	public, err := opened.AddPublic()
	if err != nil {
		return false, err
	}
	if len(public) > 0 {
		fmt.Fprintf(m.Stdout, "Made %s from the keys in %s; all keys stay.\n", strings.Join(public, ", "), c.Trust)
	}
	added, err = c.addReplicaKeys(opened, m)
	return added || len(public) > 0, err
}

// addReplicaKeys completes a directory that was made before replicas had keys of their own.
func (c *trustInit) addReplicaKeys(opened *pki.Trust, m *Main) (added bool, err error) {
	if added, err = opened.AddReplicaKeys(); !added || err != nil {
		return added, err
	}
	fmt.Fprintln(m.Stdout, "Made the keys of the replicas' tokens; all other keys stay.")
	for _, database := range pki.Databases {
		fmt.Fprintf(m.Stdout, "%s replicas: --jwt-key %s\n", database, opened.ReplicaKeyFile(database))
	}
	_, err = fmt.Fprintln(m.Stdout, "Give each replica this file with the one it has until now appended, then run regedge trust renew (docs/operations.md, \"Upgrades\").")
	return true, err
}

type trustToken struct {
	trustFlags
	Database string         `arg:"" enum:"registry,access" help:"registry or access."`
	ReadOnly bool           `env:"-" help:"A token that may only read, good at the replicas alone: the one for an edge. Without it, one that writes, good at the primary alone."`
	Life     *time.Duration `env:"-" placeholder:"DURATION" help:"How long it is good, such as 8760h. By default until the keys are replaced."`
}

// Validate refuses a token that has ended already.
func (c *trustToken) Validate() error {
	if c.Life != nil && *c.Life <= 0 {
		return errors.New("--life must be positive")
	}
	return nil
}

// Run prints a token.
func (c *trustToken) Run(m *Main) error {
	opened, err := openTrust(c.Trust, m)
	if err != nil {
		return err
	}
	right := pki.ReadWrite
	if c.ReadOnly {
		right = pki.ReadOnly
	}
	life := time.Duration(0) // without an end
	if c.Life != nil {
		life = *c.Life
	}
	token, err := newToken(opened, c.Database, right, life)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(m.Stdout, token)
	return err
}

type trustMachine struct {
	trustFlags
	Name string   `arg:"" help:"Name of the machine."`
	Host []string `env:"-" placeholder:"NAME|IP" help:"Where others reach this machine: for the primaries' one, and the writer's."`
}

// Run makes a certificate.
func (c *trustMachine) Run(m *Main) error {
	opened, err := openTrust(c.Trust, m)
	if err != nil {
		return err
	}
	cert, key, err := opened.Certificate(c.Name, c.Host...)
	if errors.Is(err, pki.ErrHostless) {
		return hint.With(err, "give --host again for each that is still meant; for a certificate without hosts, as an edge has, remove %s.crt first", c.Name)
	}
	if err != nil {
		return err
	}
	hosts := cmp.Or(strings.Join(c.Host, ", "), "none: this machine connects, and serves nothing")
	_, err = fmt.Fprintf(m.Stdout, "certificate  %s\nkey          %s\nauthority    %s\nhosts        %s\n", cert, key, opened.AuthorityFile(), hosts)
	return err
}

func openTrust(dir string, m *Main) (*pki.Trust, error) {
	opened, err := pki.Open(dir, m.Now)
	if errors.Is(err, fs.ErrPermission) {
		return nil, hint.With(err, "run it as the user that may read the keys: at the centre, root")
	}
	if err != nil {
		return nil, hint.With(err, "regedge trust init makes the keys")
	}
	return opened, nil
}

// newToken makes a token of a database.
func newToken(opened *pki.Trust, database string, right pki.Right, life time.Duration) (string, error) {
	token, err := opened.Token(database, right, life)
	if errors.Is(err, pki.ErrNoReplicaKey) {
		return "", hint.With(err, "the directory was made before replicas had keys of their own: regedge trust init adds them")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", hint.With(err, "put the key back from a copy; without one, regedge trust init makes all keys anew")
	}
	return token, err
}

// edgeSecrets are what an edge needs beside its token of the writer. All but the tokens are paths.
type edgeSecrets struct {
	ReadTokens  map[string]string `json:"read_tokens"` // by database
	Authority   string            `json:"tls_ca"`
	Certificate string            `json:"tls_cert"`
	Key         string            `json:"tls_key"`
	PublicKeys  map[string]string `json:"jwt_keys"` // by database
}

func newEdgeSecrets(opened *pki.Trust, name string) (*edgeSecrets, error) {
	s := &edgeSecrets{ReadTokens: map[string]string{}, Authority: opened.AuthorityFile(), PublicKeys: map[string]string{}}
	var err error
	for _, database := range pki.Databases {
		if s.ReadTokens[database], err = newToken(opened, database, pki.ReadOnly, pki.ReadTokenLife); err != nil {
			return nil, err
		}
		s.PublicKeys[database] = opened.ReplicaKeyFile(database)
	}
	if s.Certificate, s.Key, err = opened.Certificate("edge-" + name); err != nil {
		return nil, err
	}
	return s, nil
}

// write prints them for people.
func (s *edgeSecrets) write(w io.Writer) {
	fmt.Fprintln(w, "\nFor its replicas, tokens that may only read (REGEDGE_REGISTRY_TOKEN, REGEDGE_ACCESS_TOKEN), for 30 days; regedge trust renew replaces them:")
	for _, database := range pki.Databases {
		fmt.Fprintf(w, "%-9s %s\n", database, s.ReadTokens[database])
	}
	fmt.Fprintf(w, "\nFor regedge replica, to be copied there with the public keys:\n--tls-ca %s --tls-cert %s --tls-key %s\n--jwt-key %s (registry), %s (access)\n",
		s.Authority, s.Certificate, s.Key, s.PublicKeys["registry"], s.PublicKeys["access"])
}
