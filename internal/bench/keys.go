package main

import (
	"context"
	"fmt"
	"sync"

	"regedge/replicate/metering/writer"
)

// tokens are the secrets of the writer that the subjects share.
type tokens struct {
	Operator string
	Node     string
	Keys     []string
}

// benchPlan has limits that no load reaches.
var benchPlan = writer.Plan{
	ID: "bench", APIAccess: true, PerMinute: 1 << 40, MonthlyVolume: 1 << 40, Email: true, Phone: true,
}

// prepareKeys makes accounts with a key each, unless an earlier run did.
func (d *dataset) prepareKeys(ctx context.Context) error {
	known, err := restore(d.path("tokens.json"), &d.tokens)
	if err != nil {
		return err
	}
	d.keys = d.tokens.Keys
	if known {
		return nil
	}
	d.tokens.Operator = "bench-operator-token-of-this-directory"
	center, err := d.startWriter(ctx)
	if err != nil {
		return err
	}
	defer center.stop()
	client := writer.NewClient(center.url, d.tokens.Operator, nil)
	if err := d.makeAccounts(ctx, client); err != nil {
		return err
	}
	return save(d.path("tokens.json"), d.tokens)
}

func (d *dataset) makeAccounts(ctx context.Context, client *writer.Client) error {
	node, err := client.AddNode(ctx, "bench")
	if err != nil {
		return err
	}
	d.tokens.Node = node.Token
	if _, err := client.SetPlan(ctx, benchPlan); err != nil {
		return err
	}
	d.keys = make([]string, accounts)
	d.tokens.Keys = d.keys
	numbers := make(chan int)
	failures := make(chan error, accounts)
	var wait sync.WaitGroup
	for range 16 {
		wait.Go(func() {
			for i := range numbers {
				key, err := makeKey(ctx, client, i)
				if err != nil {
					failures <- err
				}
				d.keys[i] = key
			}
		})
	}
	for i := range accounts {
		numbers <- i
	}
	close(numbers)
	wait.Wait()
	close(failures)
	return <-failures
}

// makeKey makes one account with credits for all that a load can spend.
func makeKey(ctx context.Context, client *writer.Client, i int) (string, error) {
	account, err := client.AddAccount(ctx, fmt.Sprintf("bench-%d", i), "", benchPlan.ID)
	if err != nil {
		return "", err
	}
	if _, err := client.ChangeCredits(ctx, account.ID, writer.CreditChange{Amount: 1 << 40, Note: "bench"}); err != nil {
		return "", err
	}
	key, err := client.AddKey(ctx, account.ID, "bench")
	return key.Secret, err
}
