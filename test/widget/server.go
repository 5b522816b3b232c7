// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/test/wire"
)

// Server is an API server in memory with widgets.
type Server = wire.Server

// NewServer returns a server with these objects. The widget has a status subresource.
func NewServer(objects ...client.Object) *Server {
	return wire.NewServer(fake.NewClientBuilder().WithStatusSubresource(&Widget{}).WithScheme(Scheme()).WithObjects(objects...).Build())
}

// NewServerWithoutStatus returns a server on which the widget has no status subresource.
func NewServerWithoutStatus(objects ...client.Object) *Server {
	return wire.NewServer(fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).Build())
}
