package regedge_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	regedge "regedge/clients/go"
)

func Example() {
	client, err := regedge.New(regedge.Config{}) // the sandbox key, at `regedge dev`
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()

	company, err := client.Company(ctx, "U72900ZZ2015PTC000001")
	switch {
	case errors.Is(err, regedge.CompanyNotFound):
		fmt.Println("no such company")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(company.Data.Name, company.Data.Status)
	}
}
