// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Corbel makes the project of an operator from a Helm chart, a kustomization or a folder of manifests, runs it on a
// control plane of its own, and looks at and steers the components of all operators in a cluster.
package main

import (
	"os"

	"github.com/corbel-run/corbel/cmd/corbel/internal/command"
)

func main() { os.Exit(command.Main()) }
