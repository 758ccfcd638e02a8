// Command offlab answers whether a network offload acts, is right and is worth it.
package main

import (
	"os"

	"github.com/offlab/offlab/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
