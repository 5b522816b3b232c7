// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Face prints how many exported names, methods and fields each public package has.
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
}
