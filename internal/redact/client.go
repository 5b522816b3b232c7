// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client that adds every Secret that is read through it to the set.
func (s *Secrets) Client(inner client.Client) client.Client {
	if inner == nil || s == nil {
		return inner
	}
	return &noticing{Client: inner, secrets: s}
}

type noticing struct {
	client.Client
	secrets *Secrets
}

func (c *noticing) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	if err == nil {
		c.secrets.AddObjects(obj)
	}
	return err
}

func (c *noticing) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if err == nil {
		c.secrets.AddObjects(list)
	}
	return err
}
