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
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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
	rest rest.Interface
	// boundTo returns a client that cancels its requests when the context is done.
	boundTo        func(context.Context) (rest.Interface, error)
	metadata       clientmetadata.Interface
	requestTimeout time.Duration
	unserved       func(Resource) // called when a path proves not to be served
	dryRun         *DryRun        // nil: writes are stored
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
		rest: client,
		boundTo: func(ctx context.Context) (rest.Interface, error) {
			bound := &http.Client{Transport: contextTransport{ctx, httpClient.Transport}}
			return rest.UnversionedRESTClientForConfigAndClient(config, bound)
		},
		metadata:       partial,
		requestTimeout: options.RequestTimeout,
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
	if live := o.dryRun.known(r, namespace, name); live != nil {
		return live, nil
	}
	body, err := o.send(ctx, call{verb: http.MethodGet, resource: r, namespace: namespace, name: name})
	if err != nil {
		return nil, err
	}
	live, err := decodeObject(body, objectID{resource: r, namespace: namespace, name: name})
	o.dryRun.read(r, live)
	return live, err
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
		timeout = listTimeout
	}
	body, err := do(ctx, request, timeout)
	return body, o.classify(c.resource, err)
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

// classify separates an answer about the type from an answer about an object.
func (o *Objects) classify(r Resource, err error) error {
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
	if err == nil {
		// A server that notices that we close the connection may end its answer early, as if it were whole.
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

// encode returns the JSON of a value without escaping characters that are only special in HTML.
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

// acceptMetadata accepts metadata only, or whole objects from servers
// that cannot cut them down.
const acceptMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// ListMetadata returns the metadata of the objects of a type, in one namespace
// or, with an empty one, in all. The options are the options of the API. A quorum of the server's
// storage agrees with the (first page of the) answer, unless the options have a resourceVersion: then
// it shows the objects as they were then, if the server still knows.
func (o *Objects) ListMetadata(ctx context.Context, r Resource, namespace string, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	switch {
	case options.Continue != "":
		options.ResourceVersion = "" // the token has it
	case options.ResourceVersion != "":
		options.ResourceVersionMatch = metav1.ResourceVersionMatchExact
	}
	params, err := paramsOf(options)
	if err != nil {
		return nil, err
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

// Metadata returns a client for the metadata of the objects of a type; it is for watching. The
// content of the objects beside their metadata never arrives here, unless a server cannot cut them
// down, and is not kept then. Its requests are bounded like all other requests, except in time:
// that is up to their contexts.
func (o *Objects) Metadata(resource schema.GroupVersionResource) clientmetadata.Getter {
	return o.metadata.Resource(resource)
}

// objectID identifies the object that a request is about.
type objectID struct {
	resource        Resource
	namespace, name string
	uid             types.UID // empty: not known before
}

func (id objectID) String() string {
	return describeObject(id.resource.GVR.GroupVersion().String(), id.resource.Kind, id.namespace, id.name, id.uid)
}

// mismatch is the error of an answer that is about something else.
func (id objectID) mismatch(answered string) error {
	return protocolError("the server answered with %s instead of %s; find out what answers at its address", answered, id)
}

func describeObject(apiVersion, kind, namespace, name string, uid types.UID) string {
	text := fmt.Sprintf("%s %q of %s in namespace %q", kind, name, apiVersion, namespace)
	if uid != "" {
		text += fmt.Sprintf(" with uid %q", uid)
	}
	return text
}

// decodeObject decodes an object and makes sure that it is the requested
// one: something else may answer in the place of the server.
func decodeObject(body []byte, id objectID) (*unstructured.Unstructured, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(body, &content); err != nil {
		return nil, protocolError("the server's answer is not a JSON object of %d bytes", len(body))
	}
	object := &unstructured.Unstructured{Object: content}
	same := object.GetAPIVersion() == id.resource.GVR.GroupVersion().String() && object.GetKind() == id.resource.Kind &&
		object.GetNamespace() == id.namespace && object.GetName() == id.name
	uid := object.GetUID()
	if id.uid == "" {
		uid = ""
	}
	if !same || uid != id.uid {
		return nil, id.mismatch(describeObject(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName(), uid))
	}
	return object, nil
}

// confirms makes sure that a Status of success, where it names an object, names
// the requested one.
func confirms(status metav1.Status, id objectID) error {
	details := status.Details
	if details == nil || (details.Name == "" || details.Name == id.name) && (details.UID == "" || id.uid == "" || details.UID == id.uid) {
		return nil
	}
	return id.mismatch(fmt.Sprintf("a status of %s %q with uid %q", details.Kind, details.Name, details.UID))
}
