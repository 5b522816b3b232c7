// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Command flux applies and deletes with the library of Flux, in the way of its
// kustomize-controller, and is measured. It is a module of its own, because no user who
// uses Corbel needs that library.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/test/bench/subject"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	if err := subject.Serve(context.Background(), &worker{}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
