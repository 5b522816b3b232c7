// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// NewServer returns a server with the objects of a client in memory.
func NewServer(direct client.WithWatch) *Server {
	s := &Server{Direct: direct}
	s.WithWatch = Intercept(direct, s.serve)
	return s
}

// Intercept returns a client that hands each request but a watch to a function, such as Gate.Do, which sends it or not. The
// name of a request is its verb, followed by the subresource.
func Intercept(direct client.WithWatch, do func(request string, send func() error) error) client.WithWatch {
	return interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return do("get", func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return do("list", func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return do("create", func() error { return c.Create(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return do("delete", func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return do("deletecollection", func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return do("update", func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return do("patch", func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return do("apply", func() error { return c.Apply(ctx, obj, opts...) })
		},
		SubResourceGet: func(ctx context.Context, c client.Client, name string, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
			return do("get "+name, func() error { return c.SubResource(name).Get(ctx, obj, sub, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
			return do("create "+name, func() error { return c.SubResource(name).Create(ctx, obj, sub, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return do("update "+name, func() error { return c.SubResource(name).Update(ctx, obj, opts...) })
		},
		SubResourceApply: func(
			ctx context.Context, c client.Client, name string, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
		) error {
			return do("apply "+name, func() error { return c.SubResource(name).Apply(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return do("patch "+sub, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

func (s *Server) serve(request string, send func() error) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	before := s.Before
	s.mu.Unlock()
	if before != nil {
		if err := before(request); err != nil {
			return err
		}
	}
	return send()
}

// Requests returns the requests since the last call.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := slices.Clone(s.requests)
	s.requests = nil
	return requests
}
