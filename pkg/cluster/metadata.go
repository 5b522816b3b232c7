// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientmetadata "k8s.io/client-go/metadata"
)

// Metadata returns a client for the metadata of the objects of a type; it is for
// watching. What the objects hold beside their metadata never arrives here, unless a
// server cannot cut them down, and is not kept then. Its requests are bounded like all
// others, except in time: that is up to their contexts.
func (o *Objects) Metadata(resource schema.GroupVersionResource) clientmetadata.Getter {
	return o.metadata.Resource(resource)
}
