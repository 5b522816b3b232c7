// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"os"
	"testing"

	"github.com/corbel-run/corbel/test/env"
)

var (
	rewrite     = flag.Bool("rewrite", false, "write the files of testdata")
	helmProgram = flag.String("helm", "", "a program of Helm 4, by which releases are upgraded and uninstalled")
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(env.Main(m, env.Options{Cluster: true}))
}
