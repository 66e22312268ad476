package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"regedge/replicate/dashboard"
	"regedge/replicate/metering/journal"
	"regedge/replicate/metering/writer"
	"regedge/schema/importer"
	"regedge/testdata"
)

// The files of a developer's directory.
const (
	registryFile = "registry.db"
	accessFile   = "access.db"
	ledgerFile   = "ledger.db"
	secretsFile  = "dev.json"
	nodeFolder   = "node"
)

// What the first start makes, so that there is something to look up with.
const (
	demoAccount = "demo"
	demoPlan    = "scale"
	demoCredits = 100_000
	demoNode    = "dev"

	demoOwner    = "owner@example.com"
	demoOperator = "operator@example.com"
)

// home is a developer's directory. Its secrets are kept in a file that only its owner
// can read, because a developer wants to see them again; nothing but dev does so.
type home struct {
	dir  string
	node journal.Dir // the state of the node that dev runs; its lock is that of the directory
	// writer is what the writer was opened with.
	writer writer.Config

	OperatorToken string `json:"operator_token"`
	NodeToken     string `json:"node_token"`
	LiveKey       string `json:"live_key"`
	// The passwords of the dashboard's two sign-ins.
	OwnerPassword    string `json:"owner_password"`
	OperatorPassword string `json:"operator_password"`
	// Sampled says that the sample was imported to its end.
	Sampled bool `json:"sampled"`
}

func (h *home) path(name string) string { return filepath.Join(h.dir, name) }

// openHome takes the directory for this process and fills it, on the first start, from
// the data embedded in the program. What was interrupted is taken up where it stopped.
func openHome(ctx context.Context, m *Main, dir string, closers *closing) (*home, error) {
	h := &home{dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, withHint(fmt.Errorf("make data directory: %w", err), "--data DIR chooses another")
	}
	var err error
	if h.node, err = journal.OpenDir(h.path(nodeFolder)); err != nil {
		return nil, explainInUse(err, dir)
	}
	closers.add(ignoreClosed(h.node))
	if err := h.load(); err != nil || h.Sampled {
		return h, err
	}
	fmt.Fprintf(m.Stdout, "First start: making %s from the data in the program.\n", dir)
	if err := importSample(ctx, m, h.path(registryFile)); err != nil {
		return nil, err
	}
	h.Sampled = true
	return h, h.save()
}

// load reads the secrets, or begins with a new one.
func (h *home) load() error {
	content, err := os.ReadFile(h.path(secretsFile))
	if errors.Is(err, fs.ErrNotExist) {
		h.OperatorToken = newToken()
		return h.save()
	}
	if err == nil {
		err = json.Unmarshal(content, h)
	}
	if err != nil {
		return withHint(fmt.Errorf("read %s: %w", h.path(secretsFile), err), "remove %s to begin anew", h.dir)
	}
	return nil
}

// save writes the secrets whole or not at all.
func (h *home) save() error {
	content, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return fmt.Errorf("save secrets: %w", err)
	}
	draft := h.path(secretsFile + ".new")
	if err := os.WriteFile(draft, append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("save secrets: %w", err)
	}
	if err := os.Rename(draft, h.path(secretsFile)); err != nil {
		return fmt.Errorf("save secrets: %w", err)
	}
	return nil
}

// importSample imports the embedded files, those of one day together.
func importSample(ctx context.Context, m *Main, registry string) error {
	dir, err := os.MkdirTemp("", "regedge-sample-")
	if err != nil {
		return fmt.Errorf("unpack sample: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.CopyFS(dir, testdata.Registry()); err != nil {
		return fmt.Errorf("unpack sample: %w", err)
	}
	sources := testdata.Sources()
	for first := 0; first < len(sources); {
		asOf := sources[first].AsOf
		config := importer.Config{
			Registry: registry, AsOf: asOf, Now: m.Now,
			Pincodes: []string{filepath.Join(dir, testdata.Pincodes)},
		}
		for ; first < len(sources) && sources[first].AsOf == asOf; first++ {
			config.Files = append(config.Files, filepath.Join(dir, sources[first].Name))
		}
		if _, err := importer.Run(ctx, config); err != nil {
			return fmt.Errorf("import sample: %w", err)
		}
	}
	return nil
}

// openWriter opens the writer on the directory's ledger.
func (h *home) openWriter(ctx context.Context, m *Main, log *slog.Logger, closers *closing) (*writer.Writer, error) {
	config := writer.Config{OperatorToken: h.OperatorToken, Now: m.Now, Logger: log}
	var err error
	if config.Ledger, err = openWritable(h.path(ledgerFile), ""); err != nil {
		return nil, err
	}
	closers.add(config.Ledger.Close)
	if config.Access, err = openWritable(h.path(accessFile), ""); err != nil {
		return nil, err
	}
	closers.add(config.Access.Close)
	h.writer = config
	return writer.Open(ctx, config)
}

// prepare makes, through the writer's own API, the node that dev runs, an account with a
// key and credits, and the sign-ins of its owner and of an operator, unless an earlier
// start did.
func (h *home) prepare(ctx context.Context, w *writer.Client, pages *dashboard.Dashboard) error {
	if h.NodeToken == "" {
		if err := h.prepareNode(ctx, w); err != nil {
			return err
		}
	}
	if h.LiveKey == "" {
		if err := h.prepareAccount(ctx, w); err != nil {
			return err
		}
	}
	if h.OperatorPassword == "" {
		return h.prepareSignIns(ctx, w, pages)
	}
	return nil
}

// prepareSignIns invites the demo account's owner and an operator, and accepts for them.
func (h *home) prepareSignIns(ctx context.Context, w *writer.Client, pages *dashboard.Dashboard) error {
	accounts, err := w.Accounts(ctx)
	if err != nil {
		return err
	}
	demo := slices.IndexFunc(accounts, func(a writer.Account) bool { return a.Name == demoAccount })
	if demo < 0 {
		return withHint(errors.New("the demo account is gone"), "remove %s to begin anew", h.dir)
	}
	for _, sign := range []struct {
		email    string
		account  int64
		password *string
	}{{demoOwner, accounts[demo].ID, &h.OwnerPassword}, {demoOperator, 0, &h.OperatorPassword}} {
		invitation, err := w.Invite(ctx, sign.email, sign.account)
		if err != nil {
			return err
		}
		password := rand.Text()
		if err := pages.Accept(ctx, invitation.Token, password); err != nil {
			return err
		}
		*sign.password = password
	}
	return h.save()
}

func (h *home) prepareNode(ctx context.Context, w *writer.Client) error {
	node, err := w.AddNode(ctx, demoNode)
	if errors.Is(err, writer.ErrTaken) { // made by a start that ended before it could save the token
		node, err = w.NewNodeToken(ctx, demoNode)
	}
	if err != nil {
		return err
	}
	h.NodeToken = node.Token
	return h.save()
}

func (h *home) prepareAccount(ctx context.Context, w *writer.Client) error {
	account, err := w.AddAccount(ctx, demoAccount, "", demoPlan)
	if err != nil {
		return err
	}
	if _, err := w.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: demoCredits, Note: "first start of dev"}); err != nil {
		return err
	}
	key, err := w.AddKey(ctx, account.ID, demoAccount)
	if err != nil {
		return err
	}
	h.LiveKey = key.Secret
	return h.save()
}
