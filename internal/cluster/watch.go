// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// watchTimeout bounds a watch without TimeoutSeconds.
const watchTimeout = 10 * time.Minute

// List returns the objects of a type, in one namespace or, with an empty one, in all. The options
// are the options of the API.
func (o *Objects) List(ctx context.Context, r Resource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	params, err := paramsOf(options)
	if err != nil {
		return nil, err
	}
	body, err := o.send(ctx, call{verb: http.MethodGet, resource: r, namespace: namespace, params: params})
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(body); err != nil {
		return nil, protocolError("the server's answer to a list of %s is not one, in %d bytes of JSON", r.GVR.Resource, len(body))
	}
	if list.GetKind() != r.Kind+"List" || list.GetAPIVersion() != r.GVR.GroupVersion().String() {
		return nil, protocolError("the server answered with %q instead of a list of %s", list.GetKind(), r.GVR.Resource)
	}
	return list, nil
}

// Watch starts to watch the objects of a type, in one namespace or, with an empty one, in all. The
// options are the options of the API. It returns when the server has agreed, which the request
// timeout bounds, and repeats nothing.
//
// The decoder returns one event after the other: objects are *unstructured.Unstructured, errors
// *metav1.Status. Its error io.EOF means that the server ended the watch, as it does after
// TimeoutSeconds; a server that does not is left soon after. The decoder must be closed, which may
// be done at any time; [watch.NewStreamWatcher] makes a watch of it.
func (o *Objects) Watch(ctx context.Context, r Resource, namespace string, options metav1.ListOptions) (watch.Decoder, error) {
	options.Watch = true
	params, err := paramsOf(options)
	if err != nil {
		return nil, err
	}
	request, err := o.request(call{verb: http.MethodGet, resource: r, namespace: namespace, params: params})
	if err != nil {
		return nil, err
	}
	timeout := watchTimeout
	if options.TimeoutSeconds != nil {
		timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout+o.requestTimeout)
	late := time.AfterFunc(o.requestTimeout, cancel)
	body, err := request.MaxRetries(0).Stream(ctx)
	answered := late.Stop()
	switch {
	case err != nil && !answered:
		err = fmt.Errorf("the server did not answer within %s: %w", o.requestTimeout, err)
	case err == nil && !answered:
		_ = body.Close()
		err = fmt.Errorf("the server did not answer within %s: %w", o.requestTimeout, context.DeadlineExceeded)
	}
	if err != nil {
		cancel()
		return nil, o.classify(r, err)
	}
	bounded := &io.LimitedReader{R: body}
	return &decoder{resource: r, cancel: cancel, body: body, bounded: bounded, events: json.NewDecoder(bounded)}, nil
}

// maxEvent bounds an event of a watch, in bytes. It equals the limit of client-go, and is several
// times the greatest object that a server stores.
const maxEvent = 16 << 20

// decoder reads the events of a watch. It does without the decoder of client-go, which goes through each event three times more.
type decoder struct {
	resource Resource
	cancel   context.CancelFunc
	body     io.Closer
	bounded  *io.LimitedReader
	events   *json.Decoder
}

// Decode returns the next event.
func (d *decoder) Decode() (watch.EventType, runtime.Object, error) {
	var event struct {
		Type   string
		Object json.RawMessage
	}
	d.bounded.N = maxEvent
	if err := d.events.Decode(&event); err != nil {
		_, noJSON := errors.AsType[*json.SyntaxError](err)
		_, noEvent := errors.AsType[*json.UnmarshalTypeError](err)
		switch {
		case d.bounded.N == 0:
			err = protocolError("an event of a watch of %s has more than %d bytes", d.resource.GVR.Resource, maxEvent)
		case noJSON || noEvent:
			err = protocolError("the server sent something else than an event in a watch of %s", d.resource.GVR.Resource)
		}
		return "", nil, err // the end of the stream as it is, because it is compared
	}
	if event.Type == string(watch.Error) {
		status := &metav1.Status{}
		if err := utiljson.Unmarshal(event.Object, status); err != nil {
			return "", nil, protocolError("the error that ends a watch of %s is no Status", d.resource.GVR.Resource)
		}
		return watch.Error, status, nil
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(event.Object, &content); err != nil {
		return "", nil, protocolError("an event of a watch of %s holds no JSON object", d.resource.GVR.Resource)
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetKind() != d.resource.Kind || object.GetAPIVersion() != d.resource.GVR.GroupVersion().String() {
		return "", nil, protocolError("an event of a watch of %s is about a %q", d.resource.GVR.Resource, object.GetKind())
	}
	return watch.EventType(event.Type), object, nil
}

// Close ends the watch.
func (d *decoder) Close() {
	d.cancel()
	_ = d.body.Close()
}

// paramsOf are the parameters of a request with these options.
func paramsOf(options metav1.ListOptions) (map[string]string, error) {
	values, err := queryparams.Convert(&options)
	if err != nil {
		return nil, fmt.Errorf("options of a list: %w", err)
	}
	params := map[string]string{}
	for name := range values {
		if value := values.Get(name); value != "" {
			params[name] = value
		}
	}
	return params, nil
}
