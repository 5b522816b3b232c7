// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patchFinalizers leaves the component these finalizers.
func (b *bed) patchFinalizers(finalizers ...string) {
	b.Helper()
	w := b.get()
	before := w.DeepCopy()
	w.Finalizers = finalizers
	b.check(b.client.Patch(b.Context(), w, client.MergeFrom(before)))
}
