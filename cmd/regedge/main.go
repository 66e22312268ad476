// Command regedge is the whole service in one executable. It has a folder of its own for its name, which
// go install takes from the last element of a path.
package main

import "regedge/host/cli"

func main() { cli.Execute() }
