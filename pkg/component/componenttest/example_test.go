// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/pkg/component/componenttest"
)

// testNotes is the body of a test function of an operator. The config may be that of
// envtest; setUp is what the operator's main function calls, too.
func testNotes(t *testing.T, config *rest.Config, scheme *runtime.Scheme, setUp func(ctrl.Manager) error) {
	o := componenttest.Operator[*Note]{Config: config, Scheme: scheme, SetUp: setUp}
	edit := func(n *Note) { n.Spec.Values["text"] = "two" }
	o.TestLifecycle(t, note(), edit)
	o.TestCrashes(t, note(), edit, 10) // 1 for all points, which takes a second or more for each
}

// The example needs a test to run in.
func TestExample(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates)
	testNotes(t, o.Config, o.Scheme, o.SetUp)
}

func Example() {
	var t *testing.T                                 // of the test function
	var config *rest.Config                          // of the cluster
	setUp := func(ctrl.Manager) error { return nil } // of the operator
	if config != nil {
		testNotes(t, config, noteScheme, setUp)
	}
}
