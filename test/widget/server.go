// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"context"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Server stands in for an API server: a client on objects in memory that keeps
// a list of the requests, and can do something before each.
type Server struct {
	client.WithWatch
	// Direct is the same without the list and without Before.
	Direct client.WithWatch
	// Before is called before a request is served; an error is the answer.
	Before func(request string) error

	mu       sync.Mutex
	requests []string
}

// NewServer returns a server with these objects. The widget has a status subresource.
func NewServer(objects ...client.Object) *Server {
	return newServer(fake.NewClientBuilder().WithStatusSubresource(&Widget{}), objects)
}

// NewServerWithoutStatus returns a server on which the widget has no status subresource.
func NewServerWithoutStatus(objects ...client.Object) *Server {
	return newServer(fake.NewClientBuilder(), objects)
}

func newServer(builder *fake.ClientBuilder, objects []client.Object) *Server {
	s := &Server{Direct: builder.WithScheme(Scheme()).WithObjects(objects...).Build()}
	s.WithWatch = interceptor.NewClient(s.Direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return s.serve("get", func() error { return c.Get(ctx, key, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return s.serve("patch", func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.serve("patch "+sub, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
	return s
}

func (s *Server) serve(request string, answer func() error) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	before := s.Before
	s.mu.Unlock()
	if before != nil {
		if err := before(request); err != nil {
			return err
		}
	}
	return answer()
}

// Requests returns the requests since the last call.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := slices.Clone(s.requests)
	s.requests = nil
	return requests
}
