// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/steps"
)

var groupVersion = schema.GroupVersion{Group: "steps.test.corbel.run", Version: "v1"}

var key = client.ObjectKey{Namespace: "default", Name: "a"}

const step = steps.ConditionType("Bucket")

// Bucket is a custom resource for something outside the cluster.
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BucketSpec   `json:"spec,omitempty"`
	Status BucketStatus `json:"status,omitempty"`
}

// BucketSpec is what is wanted.
type BucketSpec struct {
	Region string `json:"region,omitempty"`
}

// BucketStatus is what is the case.
type BucketStatus struct {
	BucketName string             `json:"bucketName,omitempty"`
	Phase      string             `json:"phase,omitempty"`
	Steps      steps.Conditions   `json:"steps,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions implements steps.ConditionalResource.
func (b *Bucket) Conditions() *steps.Conditions { return &b.Status.Steps }

// GetConditions implements conditions.Getter.
func (b *Bucket) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions implements conditions.Setter.
func (b *Bucket) SetConditions(conditions []metav1.Condition) { b.Status.Conditions = conditions }

// DeepCopyObject implements runtime.Object.
func (b *Bucket) DeepCopyObject() runtime.Object {
	c := *b
	c.ObjectMeta = *b.ObjectMeta.DeepCopy()
	c.Status.Steps = b.Status.Steps.DeepCopy()
	c.Status.Conditions = slices.Clone(b.Status.Conditions)
	return &c
}

func scheme() *runtime.Scheme { return withBucket(groupVersion) }

func withBucket(gv schema.GroupVersion) *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypeWithName(gv.WithKind("Bucket"), &Bucket{})
	metav1.AddToGroupVersion(s, gv)
	return s
}

type props = map[string]apiextensionsv1.JSONSchemaProps

// definition is what controller-gen makes of the types.
func definition() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	date := apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
	object := func(properties props, required ...string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties, Required: required}
	}
	list := func(element apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &element}}
	}
	limited := func(most int64) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", MinLength: new(int64(1)), MaxLength: &most}
	}
	step := object(props{
		"type": limited(316), "status": limited(128), "attemptKey": limited(64), "reason": limited(1024), "lastTransitionTime": date,
		"lock": object(props{
			"holder": text, "process": text, "token": text, "attemptKey": text, "acquiredAt": date, "lease": text,
			"previous": text, "previousReason": text, "previousTransitionTime": date,
		}, "holder", "process", "token", "acquiredAt", "lease", "previous"),
	}, "type", "status", "lastTransitionTime")
	condition := object(props{"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": date,
		"observedGeneration": {Type: "integer", Format: "int64"}})
	root := object(props{
		"spec":   object(props{"region": text}),
		"status": object(props{"bucketName": text, "phase": limited(100), "steps": list(step), "conditions": list(condition)}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "buckets." + groupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: groupVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "buckets", Singular: "bucket", Kind: "Bucket", ListKind: "BucketList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: groupVersion.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// server stands in for an API server. It lists requests and can do something before each.
type server struct {
	client.Client
	direct client.WithWatch

	mu       sync.Mutex
	requests []string
	before   func(n int, request string) error
	after    func(n int, request string) error
}

func newServer(objects ...client.Object) *server {
	return serverOf(fake.NewClientBuilder().WithScheme(scheme()).WithStatusSubresource(&Bucket{}).WithObjects(objects...).Build())
}

func serverOf(direct client.WithWatch) *server {
	s := &server{direct: direct}
	s.Client = interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return s.serve("get", func() error { return c.Get(ctx, key, obj, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return s.serve("update "+sub, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return s.serve("patch "+sub, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
	return s
}

func (s *server) serve(request string, answer func() error) error {
	s.mu.Lock()
	s.requests = append(s.requests, request)
	n := len(s.requests)
	s.mu.Unlock()
	if s.before != nil {
		if err := s.before(n, request); err != nil {
			return err
		}
	}
	if err := answer(); err != nil {
		return err
	}
	if s.after != nil {
		return s.after(n, request)
	}
	return nil
}

// stored is a bucket as a server has it.
func stored(conditions ...steps.Condition) *Bucket {
	return &Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-1", CreationTimestamp: metav1.Unix(1000, 0)},
		Status:     BucketStatus{Steps: conditions},
	}
}

// read returns the bucket as the client has it.
func read(t testing.TB, c client.Reader) *Bucket {
	t.Helper()
	b := &Bucket{}
	if err := c.Get(context.WithoutCancel(t.Context()), key, b); err != nil {
		t.Fatal(err)
	}
	return b
}
