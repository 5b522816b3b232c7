// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Packed is a manifest in a form that takes little memory.
type Packed interface {
	Unpack() *unstructured.Unstructured
}

// Unpacked returns the object with its manifest at hand.
func (d *Desired) Unpacked() *Desired {
	if d == nil || d.Manifest != nil || d.Packed == nil {
		return d
	}
	unpacked := *d
	unpacked.Manifest = d.Packed.Unpack()
	return &unpacked
}
