// Command host is regedge under the name that its folder gives it: go run ./host dev. What is installed
// is cmd/regedge.
package main

import "regedge/host/cli"

func main() { cli.Execute() }
