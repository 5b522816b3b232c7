// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func secret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "credentials"},
		Data:       map[string][]byte{"a": []byte("hunter22")}, StringData: map[string]string{"b": "hunter33"},
	}
}

// parsed returns an object as a generator may have made it.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// ownSecret is a type that a user wrote.
type ownSecret struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`

	Data       map[string][]byte `json:"data"`
	StringData map[string]string `json:"stringData"`
}

func (o *ownSecret) DeepCopyObject() runtime.Object { return o }

func TestSecretsAreFoundAmongObjects(t *testing.T) {
	const content = `{"apiVersion":"v1","kind":"Secret","data":{"a":"aHVudGVyMjI="},"stringData":{"b":"hunter33"}}`
	for name, object := range map[string]runtime.Object{
		"typed":                       secret(),
		"a typed list":                &corev1.SecretList{Items: []corev1.Secret{*secret()}},
		"untyped":                     parsed(t, content),
		"in a list":                   parsed(t, `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[`+content+`]}]}`),
		"in a typed list of anything": &corev1.List{Items: []runtime.RawExtension{{Raw: []byte(content)}}},
		"of a type of one's own":      &ownSecret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: secret().Data, StringData: secret().StringData},
		"an untyped list":             &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*parsed(t, content)}},
		"with values that are wrong":  parsed(t, `{"apiVersion":"v1","kind":"Secret","data":{"a":{"x":["hunter22"]}},"stringData":"hunter33"}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := New()
			s.AddObjects(object)
			if got := s.Text("hunter22 hunter33"); got != Placeholder+" "+Placeholder {
				t.Errorf("got %q", got)
			}
		})
	}
	s := New()
	s.AddObjects(nil, (*ownSecret)(nil), (*corev1.Secret)(nil), (*unstructured.Unstructured)(nil), &corev1.ConfigMap{Data: map[string]string{"a": "hunter22"}})
	if got := s.Text("hunter22"); got != "hunter22" {
		t.Errorf("the value of a ConfigMap was hidden: %q", got)
	}
}

func TestSecretsThatAreReadAreNoticed(t *testing.T) {
	s := New()
	c := s.Client(fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: secret().ObjectMeta, Data: secret().Data,
	}).Build())
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "missing"}, &corev1.Secret{}); err == nil {
		t.Error("the error is lost")
	}
	if got := s.Text("hunter22"); got != "hunter22" {
		t.Fatalf("hidden before it was read: %q", got)
	}
	if err := c.List(t.Context(), &corev1.SecretList{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Text("hunter22"); got != Placeholder {
		t.Errorf("after the list: %q", got)
	}
	s = New()
	c = s.Client(c)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "credentials"}, &corev1.Secret{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Text("hunter22"); got != Placeholder {
		t.Errorf("after the read: %q", got)
	}
}

// marshaler is a value that words itself for the log.
type marshaler struct{}

func (marshaler) MarshalLog() any { return map[string]string{"x": "hunter22"} }

// bad panics when it is logged.
type bad struct{}

func (bad) MarshalLog() any { panic("hunter22") }

func TestNothingIsLogged(t *testing.T) {
	s := New()
	s.AddObjects(secret())
	var lines []string
	logger := s.Logger(funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{Verbosity: 10, LogCaller: funcr.All}))
	logger = s.Logger(logger) // twice is once
	logger.WithValues("with", "hunter22").WithName("hunter33").V(10).Info("hunter22",
		"text", "a hunter22", "bytes", []byte("hunter22"), "secret", secret(), "error", errors.New("hunter22"),
		"map", map[string]any{"x": []string{"hunter22"}}, "marshaler", marshaler{}, "bad", bad{}, "number", 7)
	logger.Error(errors.New("hunter22"), "hunter33", "x", "hunter22")
	all := strings.Join(lines, "\n")
	if len(lines) != 2 || strings.Contains(all, "hunter") || strings.Contains(all, "aHVudGVyMj") {
		t.Errorf("logged %s", all)
	}
	if !strings.Contains(lines[0], `"number"=7`) || !strings.Contains(lines[0], "context_test.go") {
		t.Errorf("the line lost its number or its caller: %s", lines[0])
	}
	s.Logger(logr.Discard()).Info("nothing happens")
}

func TestTheSetTravelsInTheContext(t *testing.T) {
	if From(context.Background()) != nil {
		t.Error("a set came out of nothing")
	}
	ctx, s := Ensure(t.Context())
	if _, again := Ensure(ctx); again != s || From(ctx) != s {
		t.Error("the set is another one")
	}
	var none *Secrets
	none.Add("hunter22")
	none.AddObjects(secret())
	none.Publish("hunter22")
	if got := none.Text("hunter22"); got != "hunter22" {
		t.Errorf("got %q", got)
	}
}
