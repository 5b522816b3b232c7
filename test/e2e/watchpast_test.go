// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inThePast makes the request one about the past.
func (w *faultyWatches) inThePast(r *http.Request, match string) *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	then := r.Clone(r.Context())
	query := then.URL.Query()
	for _, name := range []string{"sendInitialEvents", "resourceVersionMatch", "limit"} {
		query.Del(name)
	}
	query.Set("resourceVersion", w.version)
	if match != "" {
		query.Set("resourceVersionMatch", match)
		for _, name := range []string{"watch", "allowWatchBookmarks", "timeoutSeconds"} {
			query.Del(name)
		}
	}
	then.URL.RawQuery = query.Encode()
	return then
}

// fromThePast starts a watch with what there was. What has come since comes when
// the fault has ended.
func (w *faultyWatches) fromThePast(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	response, err := next.RoundTrip(w.inThePast(r, "Exact"))
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	first, err := initialEvents(response.Body)
	if err != nil {
		return nil, err
	}
	response, err = next.RoundTrip(w.inThePast(r, ""))
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	w.mu.Lock()
	w.affect()
	started := w.started
	w.mu.Unlock()
	return w.stream(r, response, first, started), nil
}

// initialEvents returns the events of a watch that starts with a list.
func initialEvents(body io.ReadCloser) (events [][]byte, err error) {
	defer func() { _ = body.Close() }()
	var list struct {
		APIVersion, Kind string
		Metadata         metav1.ListMeta
		Items            []map[string]any
	}
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return nil, err
	}
	kind := strings.TrimSuffix(list.Kind, "List")
	for _, item := range list.Items {
		item["apiVersion"], item["kind"] = list.APIVersion, kind
		events = append(events, encode("ADDED", item))
	}
	return append(events, bookmark(list.APIVersion, kind, list.Metadata.ResourceVersion, true)), nil
}
