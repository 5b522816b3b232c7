// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
)

// FromApplyConfigurations converts apply configurations, such as those of the client-go package
// applyconfigurations, into objects that a GeneratorFunc can return. They hold the fields that were
// set and nothing else, where objects of Go types also hold empty values for all other fields. The
// error lists the configurations without type or name, and nil configurations.
func FromApplyConfigurations(configurations ...runtime.ApplyConfiguration) ([]client.Object, error) {
	objects := make([]client.Object, 0, len(configurations))
	var errs []error
	for i, configuration := range configurations {
		object, err := fromApplyConfiguration(configuration)
		if err != nil {
			errs = append(errs, fmt.Errorf("apply configuration %d of %d (%T): %w", i+1, len(configurations), configuration, err))
			continue
		}
		objects = append(objects, object)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return objects, nil
}

func fromApplyConfiguration(configuration runtime.ApplyConfiguration) (*unstructured.Unstructured, error) {
	if renders.IsNil(configuration) {
		return nil, errors.New("it is nil")
	}
	encoded, err := json.Marshal(configuration)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(encoded, &object.Object); err != nil {
		return nil, err
	}
	if object.GetAPIVersion() == "" || object.GetKind() == "" || object.GetName() == "" {
		return nil, errors.New("it needs apiVersion, kind and metadata.name")
	}
	return object, nil
}
