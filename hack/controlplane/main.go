// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	program, args, ok := choose(os.Args, programs)
	if !ok {
		known := slices.Sorted(maps.Keys(programs))
		fmt.Fprintf(os.Stderr, "usage: %s PROGRAM [ARGUMENT...], or start it by the name of a program: %s\n",
			filepath.Base(os.Args[0]), strings.Join(known, ", "))
		os.Exit(2)
	}
	// The programs read the global, not a parameter.
	os.Args = args
	program()
}

// choose finds the program to run, and the arguments it shall see: its own name
// first, as if it had been a binary of its own.
func choose(args []string, programs map[string]func()) (program func(), programArgs []string, ok bool) {
	if len(args) == 0 {
		return nil, nil, false
	}
	if program, ok := programs[filepath.Base(args[0])]; ok {
		return program, args, true
	}
	if len(args) == 1 {
		return nil, nil, false
	}
	program, ok = programs[args[1]]
	return program, args[1:], ok
}
