// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest_test

import (
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{Cluster: true}))
}

// report is a test that is tested: it keeps what it would have said. It has no sub-tests.
type report struct {
	testing.TB
	errors, logs []string
}

func (r *report) Helper()      {}
func (r *report) Failed() bool { return len(r.errors) > 0 }
func (r *report) Error(args ...any) {
	r.errors = append(r.errors, fmt.Sprint(args...))
}
func (r *report) Errorf(text string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(text, args...))
}
func (r *report) Logf(text string, args ...any) { r.logs = append(r.logs, fmt.Sprintf(text, args...)) }

func (r *report) Fatal(args ...any) {
	r.Error(args...)
	goruntime.Goexit()
}

func (r *report) Fatalf(text string, args ...any) {
	r.Errorf(text, args...)
	goruntime.Goexit()
}

// check runs a test as one of its own and returns what it reports.
func check(t *testing.T, f func(t testing.TB)) *report {
	t.Helper()
	r, done := &report{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// wants expects errors and logs with all of these parts.
func (r *report) wants(t *testing.T, parts ...string) {
	t.Helper()
	if !r.Failed() {
		t.Errorf("it reports no error, want %q", parts)
	}
	all := strings.Join(append(r.errors, r.logs...), "\n")
	for _, part := range parts {
		if !strings.Contains(all, part) {
			t.Errorf("it reports %q, want %q", all, part)
		}
	}
}

// Note is a component that is rendered into ConfigMaps and a Secret.
type Note struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NoteSpec         `json:"spec,omitempty"`
	Status component.Status `json:"status,omitempty"`
}

// NoteSpec is what a note says.
type NoteSpec struct {
	Text string `json:"text"`
}

// ToUnstructured returns the values of the templates.
func (s *NoteSpec) ToUnstructured() map[string]any { return component.Parameters(s) }

// GetSpec returns the parameters of the generator.
func (n *Note) GetSpec() types.Unstructurable { return &n.Spec }

// GetStatus returns Corbel's status.
func (n *Note) GetStatus() *component.Status { return &n.Status }

// DeepCopyObject returns a copy.
func (n *Note) DeepCopyObject() runtime.Object {
	out := &Note{TypeMeta: n.TypeMeta, Spec: n.Spec, Status: *n.Status.DeepCopy()}
	n.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// NoteList is a list of Notes.
type NoteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Note `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *NoteList) DeepCopyObject() runtime.Object {
	out := &NoteList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Note))
	}
	return out
}

const noteOperator = "notes.componenttest.corbel.run"

var (
	noteVersion = schema.GroupVersion{Group: "componenttest.corbel.run", Version: "v1"}
	noteScheme  = func() *runtime.Scheme {
		scheme := runtime.NewScheme()
		if err := clientgoscheme.AddToScheme(scheme); err != nil {
			panic(err)
		}
		scheme.AddKnownTypes(noteVersion, &Note{}, &NoteList{})
		metav1.AddToGroupVersion(scheme, noteVersion)
		return scheme
	}()
)

func noteCRD() *apiextensionsv1.CustomResourceDefinition {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "notes." + noteVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: noteVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "notes", Singular: "note", Kind: "Note", ListKind: "NoteList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: noteVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}

// noteTemplates are a ConfigMap that changes with the note, one that does not, and a Secret.
const noteTemplates = `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}-text}
data: {text: {{ .Values.text | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}-constant}
data: {text: constant}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Name }}-seal}
stringData: {text: {{ .Values.text | quote }}}
`

type noteReconciler = component.Reconciler[*Note]

// notes is an operator for Notes with these templates. The hooks are added to its reconciler.
func notes(t testing.TB, templates string, hooks ...func(*noteReconciler)) componenttest.Operator[*Note] {
	t.Helper()
	config := env.Shared(t).Config()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{noteCRD()}}); err != nil {
		t.Fatal(err)
	}
	generator, err := gotemplate.New(fstest.MapFS{"note.yaml": {Data: []byte(templates)}}, ".", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return componenttest.Operator[*Note]{
		Config: config, Scheme: noteScheme,
		SetUp: func(mgr ctrl.Manager) error {
			r := component.NewReconciler[*Note](noteOperator, generator, component.ReconcilerOptions{})
			for _, hook := range hooks {
				hook(r)
			}
			return r.SetupWithManager(mgr)
		},
	}
}

func note() *Note {
	return &Note{ObjectMeta: metav1.ObjectMeta{Name: "main"}, Spec: NoteSpec{Text: "one"}}
}

func rewrite(n *Note) { n.Spec.Text = "two" }

// checkConditions checks the conditions of a Note.
func checkConditions(t testing.TB, n *Note) {
	t.Helper()
	conditionstest.Check(t, conditions.For(n, &n.Status.Conditions))
}

// isWhole reports whether enumerations run all cases, as in make test-all.
func isWhole() bool { return os.Getenv("CORBEL_SLICE") == "1/1" }

// every returns which points of crashes are run: one in so many of them.
func every(slice, whole int) int {
	if isWhole() {
		return whole
	}
	return slice
}
