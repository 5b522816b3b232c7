// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// request is a request to the API server, read from its method and its address.
type request struct {
	method, path string
	// resource is empty for requests that are about no object, such as discovery.
	resource                     schema.GroupVersionResource
	subresource, namespace, name string
	watch, dryRun                bool
	// streams is set for a watch that stands for a list: a server that does not know this
	// way is asked for a list.
	streams bool
	// informer is set for a list that starts a watch.
	informer bool
	// code is the status of the answer; 0 if there is none.
	code int
}

// parse reads a request.
func parse(r *http.Request) request {
	query := r.URL.Query()
	q := request{
		method: r.Method, path: r.URL.Path,
		watch:  query.Get("watch") == "true" || query.Get("watch") == "1",
		dryRun: query.Has("dryRun"), streams: query.Get("sendInitialEvents") == "true",
	}
	q.informer = !q.watch && r.Method == http.MethodGet && query.Has("resourceVersion")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		q.resource.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		q.resource.Group, q.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return q
	}
	if len(parts) > 2 && parts[0] == "namespaces" && !slices.Contains([]string{"status", "finalize"}, parts[2]) {
		q.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	q.resource.Resource, q.name, q.subresource = parts[0], parts[1], parts[2]
	return q
}

// String returns the method and the path.
func (q request) String() string { return q.method + " " + q.path }

// isBackground reports whether a request is not sent by a reconcile: discovery, watches, lists of
// informers, events, and leases.
func (q request) isBackground() bool {
	return q.resource.Resource == "" || q.watch || q.informer && q.name == "" || q.resource.Resource == "events" ||
		q.resource.Group == "coordination.k8s.io"
}

// isWrite reports whether a request of a reconcile changes stored objects. A dry run and a review
// store nothing.
func (q request) isWrite() bool {
	return q.method != http.MethodGet && !q.isBackground() && !q.dryRun &&
		q.resource.Group != "authorization.k8s.io" && q.resource.Group != "authentication.k8s.io"
}

// isOptional reports whether the operator only names the webhook that changes a field by the answer, if it may.
func (q request) isOptional() bool {
	return q.resource.Group == "admissionregistration.k8s.io" && q.resource.Resource == "mutatingwebhookconfigurations" && slices.Equal(q.verbs(), []string{"list"}) && !q.informer
}

// verbs are the verbs that the user of the request needs.
func (q request) verbs() []string {
	created := q.code == http.StatusCreated
	switch {
	case q.watch && q.streams:
		return []string{"watch", "list"}
	case q.watch:
		return []string{"watch"}
	case q.method == http.MethodGet && q.name == "":
		return []string{"list"}
	case q.method == http.MethodGet:
		return []string{"get"}
	case q.method == http.MethodPost:
		return []string{"create"}
	case q.method == http.MethodPut && created:
		return []string{"update", "create"}
	case q.method == http.MethodPut:
		return []string{"update"}
	case q.method == http.MethodPatch && created:
		return []string{"patch", "create"}
	case q.method == http.MethodPatch:
		return []string{"patch"}
	case q.method == http.MethodDelete && q.name == "":
		return []string{"deletecollection"}
	case q.method == http.MethodDelete:
		return []string{"delete"}
	default:
		return nil
	}
}
