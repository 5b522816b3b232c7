// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientmetadata "k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// maxRetries bounds how often a request is sent again because the server asks
// for it: 429, or a 5xx with Retry-After.
const maxRetries = 4

// Objects reads and writes objects of any type. Every method is one request
// (and its retries). All writes ask the server to warn about fields it does not
// know, which end in the log. It is safe for concurrent use.
type Objects struct {
	rest           rest.Interface
	metadata       clientmetadata.Interface
	requestTimeout time.Duration
	listTimeout    time.Duration
	unserved       func(Resource) // is told when a path turns out not to be served
}

func newObjects(config *rest.Config, httpClient *http.Client, options Options) (*Objects, error) {
	partial, err := clientmetadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.ContentConfig = rest.ContentConfig{
		ContentType:          runtime.ContentTypeJSON,
		AcceptContentTypes:   runtime.ContentTypeJSON,
		NegotiatedSerializer: statusSerializer(),
	}
	config.APIPath = "/"
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, err
	}
	return &Objects{
		rest:           client,
		metadata:       partial,
		requestTimeout: options.RequestTimeout,
		listTimeout:    options.ListTimeout,
		unserved:       func(Resource) {},
	}, nil
}

// statusSerializer decodes the Status of an error; everything else is decoded here.
func statusSerializer() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}

// Get reads an object. A quorum of the server's storage agrees with the answer.
func (o *Objects) Get(ctx context.Context, r Resource, namespace, name string) (*unstructured.Unstructured, error) {
	if err := named(r, name); err != nil {
		return nil, err
	}
	body, err := o.send(ctx, call{verb: http.MethodGet, resource: r, namespace: namespace, name: name})
	if err != nil {
		return nil, err
	}
	return decodeObject(body, asked{resource: r, namespace: namespace, name: name})
}

// call is one request for a type or an object.
type call struct {
	verb            string
	resource        Resource
	namespace, name string
	params          map[string]string
	accept          string
	contentType     string
	body            []byte
}

func (o *Objects) send(ctx context.Context, c call) ([]byte, error) {
	request, err := o.request(c)
	if err != nil {
		return nil, err
	}
	timeout := o.requestTimeout
	if c.verb == http.MethodGet && c.name == "" {
		timeout = o.listTimeout
	}
	body, err := do(ctx, request, timeout)
	return body, o.judge(c.resource, err)
}

// request prepares the request of a call.
func (o *Objects) request(c call) (*rest.Request, error) {
	path, err := c.resource.path(c.namespace, c.name)
	if err != nil {
		if _, unserved := errors.AsType[*UnservedPathError](err); unserved {
			o.unserved(c.resource)
		}
		return nil, err
	}
	if c.verb == http.MethodPost && c.name != "" {
		path = path[:len(path)-1] // sent to the collection
	}
	request := o.rest.Verb(c.verb).AbsPath(path...)
	for name, value := range c.params {
		request.Param(name, value)
	}
	if c.accept != "" {
		request.SetHeader("Accept", c.accept)
	}
	if c.body != nil {
		request.Body(c.body).SetHeader("Content-Type", c.contentType)
	}
	return request, nil
}

// judge tells an answer that is about the type from one that is about an object.
func (o *Objects) judge(r Resource, err error) error {
	if err != nil && isUnservedPath(err) {
		o.unserved(r)
		return &UnservedPathError{Resource: r, Err: err}
	}
	return err
}

// do sends a request and returns the body of the answer. An error holds the
// Status of the server if there is one.
func do(ctx context.Context, request *rest.Request, timeout time.Duration) ([]byte, error) {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := request.MaxRetries(maxRetries).Do(bounded)
	body, _ := result.Raw()
	err := result.Error()
	late := bounded.Err()
	if err == nil && len(body) == 0 {
		// A server that notices that we leave may end an answer that it has not begun.
		err = late
	}
	if status, answered := errors.AsType[*apierrors.StatusError](err); answered && status.ErrStatus.Message == "" {
		status.ErrStatus.Message = fmt.Sprintf("the server gave no reason (%d %s)", status.ErrStatus.Code, http.StatusText(int(status.ErrStatus.Code)))
	}
	if err != nil && late != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("the server did not answer within %s: %w", timeout, err)
	}
	if err != nil {
		return nil, err
	}
	return body, nil
}

// encode returns the JSON of a value without escaping what is only special in HTML.
func encode(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

func named(r Resource, name string) error {
	if name == "" {
		return errors.New("a " + r.Kind + " without a name cannot be addressed")
	}
	return nil
}
