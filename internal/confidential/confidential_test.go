// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package confidential

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/test/check"
)

func TestCredentialsAreRemovedByTheirForm(t *testing.T) {
	for text, want := range map[string]string{
		"Authorization: Bearer abc.def-1":                                              "Authorization: Bearer ***",
		`{"Authorization":["Basic dXNlcjpw"]}`:                                         `{"Authorization":["Basic ***"]}`,
		"sent bearer k8s-aws-v1.aHR0cHM6Ly9zd":                                         "sent bearer ***",
		`Get "https://jane:hunter2@host:6443/api": EOF`:                                `Get "https://***@host:6443/api": EOF`,
		"proxy http://user@proxy:3128 refused":                                         "proxy http://***@proxy:3128 refused",
		"x -----BEGIN RSA PRIVATE KEY-----\nMIIE\nq3\n-----END RSA PRIVATE KEY----- y": "x *** y",
		"-----BEGIN CERTIFICATE-----\nMIIEcut":                                         "***",
		"":                                                                             "",
		"Deployment shop/production: 1 of 3 replicas ready":                            "Deployment shop/production: 1 of 3 replicas ready",
		"authorization failed, unknown bearer of bad news":                             "authorization failed, unknown bearer of bad news",
		"https://host:6443/api?timeout=30s, mail jane@x.org":                           "https://host:6443/api?timeout=30s, mail jane@x.org",
	} {
		got := Filter(text)
		check.SameNamed(t, text, want, got)
		if again := Filter(got); again != got {
			t.Errorf("%q became %q the second time", got, again)
		}
	}
	if got := Filter(strings.Repeat("x", 2<<20)); len(got) > 2<<19+3 {
		t.Errorf("a text has %d bytes", len(got))
	}
}

func statusError(reason metav1.StatusReason, code int32, message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: reason, Code: code, Message: message, Details: &metav1.StatusDetails{Causes: causes}}}
}

func TestOfAnAnswerReasonFieldsAndTypesOfCausesStay(t *testing.T) {
	cause := func(field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: `Invalid value: "hunter2": no`}
	}
	right := `secrets "s" is forbidden: User "system:serviceaccount:shop:op" cannot create resource "secrets" in API group "" in the namespace "shop"`
	for want, err := range map[string]error{
		"the server refused it (Invalid, 422): data[tls.crt]: Invalid value; data[...]: Invalid value; data[...]: Invalid value; metadata.annotations[example.com/x].y: Invalid value": statusError(metav1.StatusReasonInvalid, 422, "hunter2", cause("data[tls.crt]"), cause(`data[hunter2"/]`), cause("data[hunter2/]"), cause("metadata.annotations[example.com/x].y")),
		"the server refused it (Conflict, 409)":                                                                                         fmt.Errorf("hunter2: %w", statusError(metav1.StatusReasonConflict, 409, "hunter2")),
		"the server refused it (400 Bad Request)":                                                                                       statusError("", 400, `illegal base64 data in "hunter2`),
		"the server refused it (Forbidden, 403): " + right:                                                                              statusError(metav1.StatusReasonForbidden, 403, right+": hunter2"),
		`the server refused it (Forbidden, 403): admission webhook "a.example.com" denied the request`:                                  statusError(metav1.StatusReasonForbidden, 403, `admission webhook "a.example.com" denied the request: hunter2 denied the request`),
		`the server refused it (Forbidden, 403): secrets "s" is forbidden: exceeded quota: few`:                                         statusError(metav1.StatusReasonForbidden, 403, `secrets "s" is forbidden: exceeded quota: few, requested: hunter2`),
		`the server refused it (InternalError, 500): Internal error occurred: failed calling webhook "a.example.com"`:                   statusError(metav1.StatusReasonInternalError, 500, `Internal error occurred: failed calling webhook "a.example.com": hunter2`),
		`the server refused it (Invalid, 422): secrets "s" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request`: statusError(metav1.StatusReasonInvalid, 422, `secrets "s" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: hunter2`),
		"the answer of the server cannot be read":                                                                                       fmt.Errorf("a: %w", runtime.NewMissingKindErr(`{"data":"hunter2"}`)),
		"the server does not answer":                                                                                                    errors.New("the server does not answer"),
	} {
		check.Same(t, want, Describe(err))
		hidden := Answer(t.Context(), schema.GroupKind{Kind: "Secret"}, err)
		if got := fmt.Sprintf("%v %+v %#v %s %q", hidden, hidden, hidden, hidden, hidden); strings.Contains(got, "hunter2") || !errors.Is(hidden, err) {
			t.Errorf("got %s", got)
		}
	}
	refusal := statusError(metav1.StatusReasonNotFound, 404, "hunter2")
	ctx := Start(t.Context(), false)
	if err := Answer(ctx, schema.GroupKind{Kind: "ConfigMap"}, refusal); err != refusal || Answer(ctx, schema.GroupKind{Kind: "Secret"}, nil) != nil {
		t.Errorf("got %v", err)
	}
	Note(ctx)
	if err := Answer(ctx, schema.GroupKind{Kind: "ConfigMap"}, refusal); strings.Contains(err.Error(), "hunter2") || !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

func TestOfAFailureThePlacesStayAndTheLogHasTheText(t *testing.T) {
	var lines []string
	ctx := logf.IntoContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	ctx = Start(ctx, false)
	cause := errors.Join(At("a.yaml:3:5 (fail)", errors.New("hunter2")), fmt.Errorf("hunter2: %w", At("patch 1 of 2", At("Pod web", errors.New("hunter2")))))
	if err := Failure(ctx, cause); err != cause || len(lines) > 0 || Failure(ctx, nil) != nil {
		t.Errorf("got %v", err)
	}
	Note(ctx)
	err := Failure(ctx, cause)
	const want = "it failed at a.yaml:3:5 (fail), patch 1 of 2: Pod web; the log of the operator has the error, which may hold a value of a Secret that was read"
	if err.Error() != want || !errors.Is(err, cause) || len(lines) != 1 || !strings.Contains(lines[0], "hunter2") {
		t.Errorf("got %v, and the log %q", err, lines)
	}
	err = Failure(ctx, fmt.Errorf("hunter2: %w", statusError(metav1.StatusReasonForbidden, 403, "hunter2")))
	if !strings.HasPrefix(err.Error(), "it failed: the server refused it (Forbidden, 403); ") {
		t.Errorf("got %v", err)
	}
}

func TestAReadOfASecretIsNoted(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}}
	inner := fake.NewClientBuilder().WithObjects(secret, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"}}).Build()
	key := client.ObjectKeyFromObject(secret)
	untyped := &unstructured.UnstructuredList{}
	untyped.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	for name, test := range map[string]struct {
		client client.Client
		read   func(ctx context.Context, c client.Client) error
		want   bool
	}{
		"get":              {NotingClient(inner), func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, &corev1.Secret{}) }, true},
		"list":             {NotingClient(inner), func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.SecretList{}) }, true},
		"list of maps":     {NotingClient(inner), func(ctx context.Context, c client.Client) error { return c.List(ctx, untyped.DeepCopy()) }, true},
		"another kind":     {NotingClient(inner), func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, &corev1.ConfigMap{}) }, false},
		"a Secret of ours": {Client(inner), func(ctx context.Context, c client.Client) error { return c.Get(ctx, key, &corev1.Secret{}) }, false},
		"what is missing": {NotingClient(inner), func(ctx context.Context, c client.Client) error {
			return client.IgnoreNotFound(c.Get(ctx, client.ObjectKey{Name: "x"}, &corev1.Secret{}))
		}, false},
	} {
		ctx := Start(t.Context(), false)
		if err := test.read(ctx, test.client); err != nil || Is(ctx) != test.want {
			t.Errorf("%s: got %v, %v", name, Is(ctx), err)
		}
	}
}

func TestNoVerbRepeatsAnAnswerAboutASecret(t *testing.T) {
	refusal := statusError(metav1.StatusReasonForbidden, 403, "hunter2")
	c := Client(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return refusal
		},
		List:   func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return refusal },
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return refusal },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return refusal
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return refusal },
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			return refusal
		},
	}))
	ctx, secret := t.Context(), &corev1.Secret{}
	for verb, err := range map[string]error{
		"get": c.Get(ctx, client.ObjectKey{}, secret), "list": c.List(ctx, &corev1.SecretList{}), "create": c.Create(ctx, secret), "update": c.Update(ctx, secret),
		"patch": c.Patch(ctx, secret, client.RawPatch("", nil)), "delete": c.Delete(ctx, secret), "deletecollection": c.DeleteAllOf(ctx, secret),
	} {
		if !apierrors.IsForbidden(err) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if err := c.Get(ctx, client.ObjectKey{}, &corev1.ConfigMap{}); err != refusal {
		t.Errorf("another kind: %v", err)
	}
}

// TestTheLogHasNoBodyOfASecret sends requests by client-go, which logs bodies, cut off at V(8) and V(9).
func TestTheLogHasNoBodyOfASecret(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for name, test := range map[string]struct {
		body         string
		confidential bool
		shown        bool
	}{
		"a Secret":              {`{"apiVersion":"v1","data":{"a":"hunter2"},"kind":"Secret","metadata":{"finalizers":["hunter2"]},"type":"hunter2"}`, false, false},
		"a long one":            {`{"apiVersion":"v1","data":{"a":"hunter2","b":"` + long + `"},"kind":"Secret"}`, false, false},
		"a list":                {`{"kind":"List","items":[{"kind":"\u0053ecret","data":{"a":"hunter2"}}]}`, false, false},
		"an answer":             {`{"kind":"Status","message":"hunter2","details":{"kind":"secrets"}}`, false, false},
		"a patch":               {`[{"op":"test","path":"/data/a","value":"hunter2"}]`, false, false},
		"a binary form":         {"k8s\x00\x01hunter2", false, false},
		"no kind":               {`{"data":{"a":"hunter2"}}`, false, false},
		"another kind":          {`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"hunter2"}}`, false, true},
		"a confidential object": {`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"hunter2"}}`, true, false},
	} {
		for verbosity := 8; verbosity <= 10; verbosity++ {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(test.body)) }))
			config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()}}
			c := check.Must(rest.UnversionedRESTClientFor(config))(t)
			var log strings.Builder
			ctx := logf.IntoContext(t.Context(), funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{Verbosity: verbosity}))
			ctx = logf.IntoContext(Start(ctx, test.confidential), logf.FromContext(Start(ctx, test.confidential)).WithName("n").WithValues("k", "v"))
			c.Post().AbsPath("/").Body([]byte(test.body)).Do(ctx)
			server.Close()
			if !strings.Contains(log.String(), "Response Body") || !strings.Contains(log.String(), "Request Body") {
				t.Fatalf("no body was logged: %s", log.String())
			}
			if strings.Contains(log.String(), "hunter2") != test.shown || strings.Contains(log.String(), "68 75 6e 74") {
				t.Errorf("%s at V(%d): %s", name, verbosity, log.String())
			}
		}
	}
}
