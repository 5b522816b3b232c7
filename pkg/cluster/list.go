// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// acceptMetadata asks for metadata only, and takes whole objects from servers
// that cannot cut them down.
const acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// ListOptions choose what ListMetadata returns.
type ListOptions struct {
	// Selector is a label selector; empty means all objects.
	Selector string
	// Limit is the size of a page; 0 means no pages.
	Limit int64
	// Continue is the token of the page before.
	Continue string
	// At is a resourceVersion: the answer shows the objects as they were then,
	// if the server still knows. Empty means now.
	At string
}

// ListMetadata returns the metadata of the objects of a type, in one namespace
// or, with an empty one, in all. A quorum of the server's storage agrees with
// the (first page of the) answer.
func (o *Objects) ListMetadata(ctx context.Context, r Resource, namespace string, options ListOptions) (*metav1.PartialObjectMetadataList, error) {
	params := map[string]string{}
	if options.Selector != "" {
		params["labelSelector"] = options.Selector
	}
	if options.Limit > 0 {
		params["limit"] = strconv.FormatInt(options.Limit, 10)
	}
	if options.Continue != "" {
		params["continue"] = options.Continue
	} else if options.At != "" {
		params["resourceVersion"], params["resourceVersionMatch"] = options.At, string(metav1.ResourceVersionMatchExact)
	}
	body, err := o.send(ctx, call{
		verb: http.MethodGet, resource: r, namespace: namespace, params: params, accept: acceptMetadata,
	})
	if err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	if err := utiljson.Unmarshal(body, list); err != nil {
		return nil, protocolError("the server's answer to a list of %s is not JSON of %d bytes", r.GVR.Resource, len(body))
	}
	// Anything else that happens to be JSON would look like an empty list.
	if list.Kind != "PartialObjectMetadataList" && list.Kind != r.Kind+"List" {
		return nil, protocolError("the server answered with %q instead of a list of %s", list.Kind, r.GVR.Resource)
	}
	return list, nil
}
