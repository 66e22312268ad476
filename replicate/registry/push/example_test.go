package push_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"regedge/replicate/registry/libsql"
	"regedge/replicate/registry/push"
)

// A registry file is pushed to a primary, and the release before it is pushed again: a rollback.
func Example() {
	ctx := context.Background()
	primary, err := libsql.Open("https://registry.example.com", "a token that may write")
	if err != nil {
		log.Fatal(err)
	}
	defer primary.Close()
	release, err := push.Snapshot(ctx, "registry.db", "releases", nil)
	if err != nil {
		log.Fatal(err)
	}
	config := push.Config{Snapshots: "releases", Release: release, Primary: primary, Now: time.Now}
	report, err := push.Run(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Records(), "records were pushed in", report.Transactions, "transactions")

	if config.Release, err = push.Previous(ctx, primary); err != nil {
		log.Fatal(err)
	}
	config.Rollback = true
	if _, err := push.Run(ctx, config); err != nil {
		log.Fatal(err)
	}
}
