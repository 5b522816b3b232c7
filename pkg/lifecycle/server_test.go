// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "a"}}
