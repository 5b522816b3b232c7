// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Face prints how many exported names, methods and fields each public package has, how many references between the files of
// pkg/component point upward, and how many tics the comments have in 1,000 lines.
package main

import (
	"fmt"
	"os"

	"github.com/corbel-run/corbel/test/architecture"
)

func main() {
	tree, err := architecture.Load(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	for _, face := range architecture.Faces(tree) {
		fmt.Println(face)
	}
	upward, pairs := architecture.Upward(tree, "pkg/component")
	fmt.Printf("pkg/component: %d of %d references between files point upward\n", upward, pairs)
	found, lines := architecture.CountTics(tree)
	fmt.Printf("comments: %d tics in %d lines, %d in 1,000\n", found, lines, (found*1000+lines-1)/lines)
}
