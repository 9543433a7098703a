//go:build ignore

// certificates DIR writes the files of package securetest.
package main

import (
	"fmt"
	"os"

	"github.com/smartfeed/smartfeed/internal/testkit/securetest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: certificates DIR")
		os.Exit(2)
	}
	if err := securetest.Write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "certificates:", err)
		os.Exit(1)
	}
}
