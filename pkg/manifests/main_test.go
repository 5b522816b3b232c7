// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"os"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// Generators that are isolated render in this program, started once more.
func TestMain(m *testing.M) {
	manifests.RunIsolated()
	os.Exit(m.Run())
}
