// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// What is not set is not there: no replicas, so that an autoscaler may set them.
func ExampleFromApplyConfigurations() {
	generator := manifests.GeneratorFunc(func(_ context.Context, _, name string, _ types.Unstructurable) ([]client.Object, error) {
		return manifests.FromApplyConfigurations(
			applyapps.Deployment(name, "").WithSpec(applyapps.DeploymentSpec().WithMinReadySeconds(5)),
		)
	})
	objects, err := manifests.Generate(context.Background(), generator, "default", "shop", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(objects[0].(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()["spec"])
	// Output: map[minReadySeconds:5]
}

func TestApplyConfigurationsThatAreNoObjects(t *testing.T) {
	var none *applycore.ConfigMapApplyConfiguration
	objects, err := manifests.FromApplyConfigurations(nil, none, &applycore.ConfigMapApplyConfiguration{}, applycore.ConfigMap("a", "b"))
	for _, part := range []string{"apply configuration 1 of 4 (<nil>): it is nil", "apply configuration 2 of 4 (*v1.ConfigMapApplyConfiguration): it is nil", "apply configuration 3 of 4 (*v1.ConfigMapApplyConfiguration): it needs apiVersion"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %v, want %q", err, part)
		}
	}
	if objects != nil || strings.Contains(fmt.Sprint(err), "4 of 4") {
		t.Errorf("got %v, %v", objects, err)
	}
}
