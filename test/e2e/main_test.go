// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/test/env"
)

// parallel is how many tests and cases of enumerations run at a time, unless the
// flag says otherwise: most of their time they wait.
const parallel = "20"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", parallel)
	}
	ctrl.SetLogger(logr.Discard())
	options := env.Options{Cluster: true, AuditLog: true, AuditBodies: true}
	if os.Getenv(adoptChartsVariable) != "" {
		options.Nodes = 3 // for replicas that must not share a node
	}
	code := env.Main(m, options)
	if err := stopFarCluster(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the second cluster: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
