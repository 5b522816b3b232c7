// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// MaxRequests is how many requests an explanation sends, but for those of discovery. The read of the
	// component counts.
	MaxRequests = 10
	// maxObjects bounds a list.
	maxObjects = 200
)

// Collector asks a cluster what an explanation needs.
type Collector struct {
	// Reader reads from the server, without a cache.
	Reader client.Reader
}

// Explain returns why the component is not ready. The facts are the component, which was read already, without answers.
func (c Collector) Explain(ctx context.Context, facts Facts, now func() time.Time) (Chain, error) {
	facts.Answers = map[Question]Answer{}
	for requests := 1; ; {
		chain, open := explain(facts, now())
		chain.Requests = requests
		if err := ctx.Err(); err != nil {
			return chain, err
		}
		if len(open) == 0 {
			return chain, nil
		}
		if requests >= MaxRequests {
			for _, q := range open {
				chain.Unknown = append(chain.Unknown, q.String()+": not read, because an explanation sends at most 10 requests")
			}
			return chain, nil
		}
		// Each answer may make others unnecessary.
		facts.Answers[open[0]] = c.answer(ctx, open[0])
		requests++
	}
}

// answer sends one request.
func (c Collector) answer(ctx context.Context, q Question) Answer {
	gvk := schema.GroupVersionKind{Group: q.Object.Group, Version: q.Object.Version, Kind: q.Object.Kind}
	if q.Verb == verbGet {
		object := unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		err := c.Reader.Get(ctx, client.ObjectKey{Namespace: q.Object.Namespace, Name: q.Object.Name}, &object)
		return Answer{Objects: []unstructured.Unstructured{object}, Err: err}
	}
	list := &unstructured.UnstructuredList{}
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	err := c.Reader.List(ctx, list, client.InNamespace(q.Object.Namespace), client.Limit(maxObjects),
		&client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: q.Labels, FieldSelector: q.Fields}})
	return Answer{Objects: list.Items, Err: err}
}
