// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
)

// Recorder is a transport that keeps the requests that are sent, and answers them
// from the objects that it holds. It minds no precondition and has no admission: a
// test checks what was sent. What a server does with it is for the tests with a
// control plane. It is safe for concurrent use.
type Recorder struct {
	// Answer answers a request in place of the Recorder; the code 0 leaves it to the
	// Recorder. It is not called for discovery, and must be set before the first request.
	Answer func(Sent) (code int, body any)

	kinds   []kind
	mu      sync.Mutex
	version int
	objects map[address]*unstructured.Unstructured
	sent    []Sent
}

// Sent is a request.
type Sent struct {
	Method, Path string
	Query        url.Values
	// Body is a JSON object; nil if there is none.
	Body map[string]any
}

// String returns the method and the path.
func (s Sent) String() string { return s.Method + " " + s.Path }

// Field returns a string of the body; empty if there is none.
func (s Sent) Field(path ...string) string {
	text, _, _ := unstructured.NestedString(s.Body, path...)
	return text
}

// kind is a type that the Recorder serves.
type kind struct {
	schema.GroupVersionResource
	name       string
	namespaced bool
}

type address struct {
	kind            kind
	namespace, name string
}

// ClusterUID is the uid of the namespace kube-system that every Recorder holds.
const ClusterUID = "cluster"

// NewRecorder returns a Recorder that serves ConfigMaps, Secrets and Namespaces,
// CustomResourceDefinitions, APIServices, ValidatingAdmissionPolicies and their
// bindings, and the kind Foo of example.com/v1. It holds the objects.
func NewRecorder(objects ...*unstructured.Unstructured) *Recorder {
	gvr := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	r := &Recorder{objects: map[address]*unstructured.Unstructured{}, kinds: []kind{
		{gvr("", "v1", "configmaps"), "ConfigMap", true},
		{gvr("", "v1", "secrets"), "Secret", true},
		{gvr("", "v1", "serviceaccounts"), "ServiceAccount", true},
		{gvr("", "v1", "namespaces"), "Namespace", false},
		{gvr("", "v1", "endpoints"), "Endpoints", true},
		{gvr("", "v1", "events"), "Event", true},
		{gvr("", "v1", "persistentvolumeclaims"), "PersistentVolumeClaim", true},
		{gvr("", "v1", "pods"), "Pod", true},
		{gvr("apps", "v1", "replicasets"), "ReplicaSet", true},
		{gvr("coordination.k8s.io", "v1", "leases"), "Lease", true},
		{gvr("discovery.k8s.io", "v1", "endpointslices"), "EndpointSlice", true},
		{gvr("apiextensions.k8s.io", "v1", "customresourcedefinitions"), "CustomResourceDefinition", false},
		{gvr("apiregistration.k8s.io", "v1", "apiservices"), "APIService", false},
		{gvr("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"), "MutatingWebhookConfiguration", false},
		{gvr("example.com", "v1", "foos"), "Foo", true},
	}}
	system := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	system.SetName("kube-system")
	system.SetUID(ClusterUID)
	for _, object := range append(objects, system) {
		r.Put(object)
	}
	return r
}

// Config returns a configuration for a client that sends its requests to the Recorder.
func (r *Recorder) Config() *rest.Config {
	config := &rest.Config{Host: "http://recorder.invalid"}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return Through(next, r.answer) })
	return config
}

// Sent returns the requests so far, without discovery, with one of the methods
// given; all, if none is given.
func (r *Recorder) Sent(methods ...string) []Sent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.sent), func(s Sent) bool {
		return len(methods) > 0 && !slices.Contains(methods, s.Method)
	})
}

// Writes returns the requests so far that write. A review of rights stores no object.
func (r *Recorder) Writes() []Sent {
	return slices.DeleteFunc(r.Sent(http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete), func(s Sent) bool {
		return strings.HasPrefix(s.Path, "/apis/authorization.k8s.io/")
	})
}

// Put makes the Recorder hold an object, completed as by a server. The kind must be one
// that it serves.
func (r *Recorder) Put(object *unstructured.Unstructured) *unstructured.Unstructured {
	i := slices.IndexFunc(r.kinds, func(k kind) bool { return k.GroupVersion().WithKind(k.name) == object.GroupVersionKind() })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.put(address{r.kinds[i], object.GetNamespace(), object.GetName()}, object.DeepCopy())
}

func (r *Recorder) put(at address, object *unstructured.Unstructured) *unstructured.Unstructured {
	r.version++
	object.SetResourceVersion(strconv.Itoa(r.version))
	if before := r.objects[at]; before != nil {
		object.SetUID(before.GetUID())
	} else if object.GetUID() == "" {
		object.SetUID(types.UID("uid-" + strconv.Itoa(r.version)))
	}
	r.objects[at] = object
	return object.DeepCopy()
}

func (r *Recorder) answer(request *http.Request) (*http.Response, error) {
	sent := Sent{Method: request.Method, Path: request.URL.Path, Query: request.URL.Query()}
	if request.Body != nil {
		raw, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		_ = utiljson.Unmarshal(raw, &sent.Body) // a JSON patch is no object
	}
	code, body := r.reply(sent, strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadataList"))
	raw, err := json.Marshal(body)
	return &http.Response{
		Request: request, StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(raw)),
	}, err
}

func (r *Recorder) reply(sent Sent, partial bool) (int, any) {
	if code, body := r.discovery(sent.Path); code != 0 {
		return code, body
	}
	r.mu.Lock()
	r.sent = append(r.sent, sent)
	r.mu.Unlock()
	if r.Answer != nil {
		if code, body := r.Answer(sent); code != 0 {
			return code, body
		}
	}
	at, ok := r.find(sent.Path)
	if !ok {
		return http.StatusNotFound, Failure(http.StatusNotFound, metav1.StatusReasonNotFound, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if sent.Method == http.MethodGet && at.name == "" {
		return http.StatusOK, r.list(at, sent.Query.Get("labelSelector"), partial)
	}
	return r.serve(at, sent)
}

// serve answers a request for one object.
func (r *Recorder) serve(at address, sent Sent) (int, any) {
	object := (&unstructured.Unstructured{Object: sent.Body}).DeepCopy()
	if sent.Method == http.MethodPost {
		at.name = object.GetName()
	}
	live, details := r.objects[at], &metav1.StatusDetails{Name: at.name, Group: at.kind.Group, Kind: at.kind.Resource}
	apply := sent.Method == http.MethodPatch && sent.Query.Get("force") == "true"
	switch {
	case sent.Method == http.MethodPost && live != nil:
		return http.StatusConflict, Failure(http.StatusConflict, metav1.StatusReasonAlreadyExists, details)
	case sent.Method == http.MethodPost:
		return http.StatusCreated, r.put(at, object).Object
	case live == nil && !apply:
		return http.StatusNotFound, Failure(http.StatusNotFound, metav1.StatusReasonNotFound, details)
	case sent.Method == http.MethodGet:
		return http.StatusOK, live.Object
	case sent.Method == http.MethodPut || live == nil:
		return http.StatusOK, r.put(at, object).Object
	case sent.Method == http.MethodPatch:
		merged := live.DeepCopy()
		merge(merged.Object, sent.Body)
		return http.StatusOK, r.put(at, merged).Object
	case len(live.GetFinalizers()) > 0:
		terminating := live.DeepCopy()
		terminating.SetDeletionTimestamp(&metav1.Time{Time: metav1.Now().Time})
		return http.StatusOK, r.put(at, terminating).Object
	default:
		delete(r.objects, at)
		details.UID = live.GetUID()
		return http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Details: details}
	}
}

// merge does what a merge patch does.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		inner, isMap := value.(map[string]any)
		below, hasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && hasMap:
			merge(below, inner)
		default:
			into[key] = value
		}
	}
}

func (r *Recorder) list(at address, selector string, partial bool) any {
	matches, err := labels.Parse(selector)
	if err != nil {
		return Failure(http.StatusBadRequest, metav1.StatusReasonBadRequest, nil)
	}
	items := []any{}
	for _, key := range slices.SortedFunc(maps.Keys(r.objects), func(a, b address) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	}) {
		if key.kind == at.kind && (at.namespace == "" || key.namespace == at.namespace) && matches.Matches(labels.Set(r.objects[key].GetLabels())) {
			items = append(items, r.objects[key].Object)
		}
	}
	list := map[string]any{"apiVersion": at.kind.GroupVersion().String(), "kind": at.kind.name + "List", "metadata": map[string]any{"resourceVersion": strconv.Itoa(r.version)}, "items": items}
	if partial {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	return list
}

// find returns what a path is about; the name is empty for a collection.
func (r *Recorder) find(path string) (address, bool) {
	for _, k := range r.kinds {
		rest, ok := strings.CutPrefix(path, prefix(k.GroupVersion())+"/")
		if !ok {
			continue
		}
		parts, namespace := strings.Split(rest, "/"), ""
		if len(parts) > 2 && parts[0] == "namespaces" {
			namespace, parts = parts[1], parts[2:]
		}
		if parts[0] != k.Resource {
			continue
		}
		return address{k, namespace, strings.Join(parts[1:], "/")}, true
	}
	return address{}, false
}

func prefix(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.String()
}

// discovery answers what is asked about the types.
func (r *Recorder) discovery(path string) (int, any) {
	switch path {
	case "/api":
		return http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, k := range r.kinds {
			if k.Group != "" {
				version := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
			}
		}
		return http.StatusOK, groups
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	for _, k := range r.kinds {
		if path == prefix(k.GroupVersion()) {
			list.GroupVersion = k.GroupVersion().String()
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Resource, Kind: k.name, Namespaced: k.namespaced, Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"},
			})
		}
	}
	if len(list.APIResources) == 0 {
		return 0, nil
	}
	return http.StatusOK, list
}

// Failure is the Status of an error.
func Failure(code int, reason metav1.StatusReason, details *metav1.StatusDetails) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Details: details, Message: fmt.Sprintf("the recorder answers %d", code),
	}
}
