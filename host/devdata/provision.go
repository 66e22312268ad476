package devdata

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"regedge/handler/ident"
	"regedge/replicate/dashboard"
	"regedge/replicate/metering/writer"
)

// The demo data of the first start, so that a developer can look something up at once.
const (
	demoAccount = "demo"
	demoPlan    = "scale"
	demoCredits = 100_000
	demoNode    = "dev"

	// Owner and Operator are the e-mail addresses of the dashboard's two sign-ins.
	Owner    = "owner@example.com"
	Operator = "operator@example.com"
)

// Provision makes through the writer's API, unless an earlier start has: the node, an account
// with a key and credits, and the sign-ins of an owner and an operator.
func (d *Data) Provision(ctx context.Context, w *writer.Client, pages *dashboard.Dashboard) error {
	if d.NodeToken == "" {
		if err := d.makeNode(ctx, w); err != nil {
			return err
		}
	}
	if d.LiveKey == "" {
		if err := d.makeAccount(ctx, w); err != nil {
			return err
		}
	}
	if d.OperatorPassword == "" {
		return d.makeSignIns(ctx, w, pages)
	}
	return nil
}

func (d *Data) makeNode(ctx context.Context, w *writer.Client) error {
	node, err := w.AddNode(ctx, demoNode)
	if errors.Is(err, writer.ErrTaken) { // an earlier start made it and ended before it saved the token
		node, err = w.NewNodeToken(ctx, demoNode)
	}
	if err != nil {
		return err
	}
	d.NodeToken = node.Token
	return d.save()
}

func (d *Data) makeAccount(ctx context.Context, w *writer.Client) error {
	accounts, err := w.Accounts(ctx)
	if err != nil {
		return err
	}
	var account writer.Account
	if demo := slices.IndexFunc(accounts, isDemo); demo >= 0 { // an earlier start made it and ended before it saved the key
		account = accounts[demo]
	} else if account, err = w.AddAccount(ctx, demoAccount, "", demoPlan); err != nil {
		return err
	}
	if account.Bought == 0 {
		if _, err := w.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: demoCredits, Note: "first start of dev"}); err != nil {
			return err
		}
	}
	key, err := w.AddKey(ctx, account.ID, demoAccount)
	if err != nil {
		return err
	}
	d.LiveKey = key.Secret
	return d.save()
}

// KeyWorks reports whether the key of the first start still works: it was neither revoked nor given another
// secret.
func (d *Data) KeyWorks(ctx context.Context, w *writer.Client) (bool, error) {
	accounts, err := w.Accounts(ctx)
	if err != nil {
		return false, err
	}
	shown := ident.KeyShown(d.LiveKey)
	for _, account := range accounts {
		keys, err := w.Keys(ctx, account.ID)
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(keys, func(k writer.Key) bool { return k.Active() && (k.Shown == shown || k.OldShown == shown) }) {
			return true, nil
		}
	}
	return false, nil
}

func isDemo(a writer.Account) bool { return a.Name == demoAccount }

// makeSignIns invites the demo account's owner and an operator, and accepts for both.
func (d *Data) makeSignIns(ctx context.Context, w *writer.Client, pages *dashboard.Dashboard) error {
	accounts, err := w.Accounts(ctx)
	if err != nil {
		return err
	}
	demo := slices.IndexFunc(accounts, isDemo)
	if demo < 0 {
		return d.startOver(errors.New("the demo account is missing"))
	}
	for _, signIn := range []struct {
		email    string
		account  int64 // 0 for an operator
		password *string
	}{{Owner, accounts[demo].ID, &d.OwnerPassword}, {Operator, 0, &d.OperatorPassword}} {
		invitation, err := w.Invite(ctx, signIn.email, signIn.account)
		if err != nil {
			return err
		}
		password := rand.Text()
		if err := pages.Accept(ctx, invitation.Token, password); err != nil {
			return err
		}
		*signIn.password = password
	}
	return d.save()
}
