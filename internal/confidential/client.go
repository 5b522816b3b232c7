// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package confidential

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client that removes the answers of the server about Secrets from its errors.
func Client(inner client.Client) client.Client { return hiding(inner, false) }

// NotingClient is Client that also notes Secrets which are read.
func NotingClient(inner client.Client) client.Client { return hiding(inner, true) }

func hiding(inner client.Client, notes bool) client.Client {
	if inner == nil {
		return nil
	}
	return &hidingClient{inner, notes}
}

type hidingClient struct {
	client.Client
	notes bool
}

func (c *hidingClient) answer(ctx context.Context, object runtime.Object, reads bool, err error) error {
	gvk, unknown := c.GroupVersionKindFor(object)
	if unknown != nil {
		gvk = schema.GroupVersionKind{}
	}
	if c.notes && reads && err == nil && IsSecret(gvk.GroupKind()) {
		Note(ctx)
	}
	return Answer(ctx, gvk.GroupKind(), err)
}

func (c *hidingClient) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return c.answer(ctx, object, true, c.Client.Get(ctx, key, object, options...))
}

func (c *hidingClient) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.answer(ctx, list, true, c.Client.List(ctx, list, options...))
}

func (c *hidingClient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return c.answer(ctx, object, false, c.Client.Create(ctx, object, options...))
}

func (c *hidingClient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return c.answer(ctx, object, false, c.Client.Update(ctx, object, options...))
}

func (c *hidingClient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.answer(ctx, object, false, c.Client.Patch(ctx, object, patch, options...))
}

func (c *hidingClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return c.answer(ctx, object, false, c.Client.Delete(ctx, object, options...))
}

func (c *hidingClient) DeleteAllOf(ctx context.Context, object client.Object, options ...client.DeleteAllOfOption) error {
	return c.answer(ctx, object, false, c.Client.DeleteAllOf(ctx, object, options...))
}
