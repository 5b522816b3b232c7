// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// targetScheme returns the scheme for clients of targets: what the manager knows,
// and what the options and the generator add. The manager's own scheme is left
// alone, because it may be in use already.
func targetScheme(managers *runtime.Scheme, s settings, generator manifests.Generator) (scheme *runtime.Scheme, err error) {
	// A scheme panics when one kind is registered with two types.
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("scheme for the target cluster: %v", value)
		}
	}()
	scheme = runtime.NewScheme()
	for gvk, t := range managers.AllKnownTypes() {
		if object, ok := reflect.New(t).Interface().(runtime.Object); ok {
			scheme.AddKnownTypeWithName(gvk, object)
		}
	}
	if s.schemeBuilder != nil {
		if err := s.schemeBuilder.AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("option SchemeBuilder: %w", err)
		}
	}
	if err := manifests.AddToScheme(generator, scheme); err != nil {
		return nil, fmt.Errorf("scheme of the resource generator: %w", err)
	}
	return scheme, nil
}
