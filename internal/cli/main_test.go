// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"os"
	"testing"

	"github.com/corbel-run/corbel/test/env"
)

var rewrite = flag.Bool("rewrite", false, "write the files of testdata")

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(env.Main(m, env.Options{Cluster: true}))
}
