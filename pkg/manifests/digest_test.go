// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"github.com/corbel-run/corbel/pkg/manifests"
)

// dated is a generator that knows what it renders from.
type dated struct {
	manifests.GeneratorFunc
	digest string
}

func (d dated) Digest() string {
	if d.digest == "panic" {
		panic("no digest")
	}
	return d.digest
}
