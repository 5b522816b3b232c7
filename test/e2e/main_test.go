// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/test/env"
)

// parallel is how many cases of an enumeration go on at a time, unless the flag
// says otherwise: most of their time they wait.
const parallel = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", parallel)
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{Cluster: true, AuditLog: true, AuditBodies: true}))
}
