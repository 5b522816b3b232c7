// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// protected returns what the component, and its operator, cannot live without. In
// another cluster objects of the same names are other objects.
func (h *handler[T]) protected(obj T) ([]reconciler.Key, error) {
	if own, ok := configurationOf[ClientConfiguration](obj); ok && own.GetKubeConfig() != nil {
		return nil, nil
	}
	mapping, err := h.mapper.RESTMapping(h.kind.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("find the definition of the type %s: %w", h.kind, err)
	}
	return []reconciler.Key{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: mapping.Resource.GroupResource().String()},
		{Kind: "Namespace", Name: h.settings.operatorNamespace},
		{Kind: "Secret", Namespace: h.settings.operatorNamespace, Name: h.settings.name + digestKeySuffix},
	}, nil
}
