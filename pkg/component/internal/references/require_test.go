// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

var databaseKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Database"}

func testTerms(namespaces ...string) Terms {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(databaseKind, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Zone"}, meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	return Terms{Kind: schema.GroupKind{Group: "example.com", Kind: "App"}, Namespaces: namespaces, Mapper: mapper}
}

// required returns a requirement, and where it loads its inputs.
func required(i int, kind, name string, r Requirement) (Found, *map[string][]byte) {
	loaded := new(map[string][]byte)
	if r.APIVersion == "" {
		r.APIVersion = "example.com/v1"
	}
	return Found{Path: fmt.Sprintf("spec.requires[%d]", i), source: &Source{Kind: kind, Name: name, Loaded: loaded, Requirement: &r}}, loaded
}

var app = &metav1.ObjectMeta{Namespace: "prod", Name: "web"}

func TestMistakesInRequirements(t *testing.T) {
	inputs := func(inputs ...string) Requirement {
		r := Requirement{Inputs: map[string]string{}}
		for _, path := range inputs {
			r.Inputs[path] = "host"
		}
		return r
	}
	tests := []struct {
		name, kind, object string
		requirement        Requirement
		namespaces         []string
		want               string // one mistake; empty: there is none
	}{
		{name: "a component", kind: "Database", object: "main", requirement: inputs("database.host", "database.port")},
		{name: "an object of the core group", kind: "ConfigMap", object: "main", requirement: Requirement{APIVersion: "v1", Condition: "has(self.data)"}},
		{name: "an allowed namespace", kind: "Database", object: "main", requirement: Requirement{Namespace: "shared"}, namespaces: []string{"shared"}},
		{name: "all namespaces", kind: "Database", object: "main", requirement: Requirement{Namespace: "shared"}, namespaces: []string{"*"}},
		{name: "the namespace of the component", kind: "Database", object: "main", requirement: Requirement{Namespace: "prod"}},
		{name: "a component of its kind", kind: "App", object: "other"},
		{name: "a component of its name elsewhere", kind: "App", object: "web", requirement: Requirement{Namespace: "shared"}, namespaces: []string{"*"}},
		{name: "itself", kind: "App", object: "web", want: "spec.requires[0]: a component cannot require itself"},
		{name: "itself in another version", kind: "App", object: "web", requirement: Requirement{APIVersion: "example.com/v2", Namespace: "prod"}, want: "spec.requires[0]: a component cannot require itself"},
		{name: "another namespace", kind: "Database", object: "main", requirement: Requirement{Namespace: "shared"}, namespaces: []string{"others"},
			want: `spec.requires[0].namespace: it must be that of the component, because the option RequireNamespaces of the operator does not have "shared"`},
		{name: "no version", kind: "Database", object: "main", requirement: Requirement{APIVersion: "example.com/"}, want: "spec.requires[0].apiVersion: a DNS-1035 label must"},
		{name: "no kind", object: "main", want: "spec.requires[0].kind: a DNS-1035 label must"},
		{name: "no name", kind: "Database", want: "spec.requires[0].name: a lowercase RFC 1123 subdomain must"},
		{name: "a bad name", kind: "Database", object: "a/b", want: "spec.requires[0].name: a lowercase RFC 1123 subdomain must"},
		{name: "a bad namespace", kind: "Database", object: "main", requirement: Requirement{Namespace: "a/b"}, namespaces: []string{"*"}, want: "spec.requires[0].namespace: a lowercase RFC 1123 label must"},
		{name: "a condition that does not compile", kind: "Database", object: "main", requirement: Requirement{Condition: "self."}, want: `spec.requires[0].condition: "self.": character `},
		{name: "a condition that is no bool", kind: "Database", object: "main", requirement: Requirement{Condition: "1 + 1"}, want: `spec.requires[0].condition: "1 + 1": gives int, not a bool`},
		{name: "a path with an empty name", kind: "Database", object: "main", requirement: inputs("a..b"), want: `spec.requires[0].inputs: "a..b" must be a path of names with dots between them`},
		{name: "no output", kind: "Database", object: "main", requirement: Requirement{Inputs: map[string]string{"a": ""}}, want: "spec.requires[0].inputs: a: the name of an output: "},
		{name: "one path below another", kind: "Database", object: "main", requirement: inputs("a", "a.b.c"), want: "spec.requires[0].inputs: a.b.c is below a parameter that is no object"},
		{name: "a path below a text", kind: "Database", object: "main", requirement: inputs("size.x"), want: "spec.requires[0].inputs: size.x is below a parameter that is no object"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, _ := required(0, test.kind, test.object, test.requirement)
			err := mistakesOf(testTerms(test.namespaces...), r)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("the mistake is %v, want %q", err, test.want)
			}
		})
	}
}

func mistakesOf(terms Terms, found ...Found) error {
	return errors.Join(Mistakes(found, app.Namespace), terms.Mistakes(found, app, func() map[string]any { return map[string]any{"size": "3"} }))
}

func TestMistakesOfSeveralRequirements(t *testing.T) {
	a, _ := required(0, "Database", "a", Requirement{Inputs: map[string]string{"host": "host"}})
	b, _ := required(1, "Database", "B", Requirement{Inputs: map[string]string{"host": "host", "host.x": "host"}})
	err := mistakesOf(testTerms(), a, b)
	for _, want := range []string{
		"spec.requires[1].name: ", "spec.requires[1].inputs: host is an input of spec.requires[0], too", "spec.requires[1].inputs: host.x is below a parameter that is no object",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the mistakes are %v, want %q", err, want)
		}
	}
	many := slices.Repeat([]Found{a}, maxRequirements+1)
	if err := mistakesOf(testTerms(), many...); err == nil || !strings.Contains(err.Error(), "the spec has 33 requirements; at most 32 are accepted") {
		t.Errorf("too many requirements: %v", err)
	}
}

// database is an object of another operator.
func database(name string, status map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	u.SetGroupVersionKind(databaseKind)
	u.SetNamespace("prod")
	u.SetName(name)
	u.SetUID(types.UID(name))
	u.SetGeneration(2)
	return u
}

func ready(value, message string) []any {
	return []any{map[string]any{"type": "Ready", "status": value, "reason": "Because", "message": message}}
}

func requirementObjects() []client.Object {
	zone := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": ready("True", "")}}}
	zone.SetGroupVersionKind(databaseKind.GroupVersion().WithKind("Zone"))
	zone.SetName("eu")
	return []client.Object{
		zone,
		database("main", map[string]any{"observedGeneration": int64(2), "conditions": ready("True", ""), "outputs": map[string]any{"host": "db.prod"}, "secretOutputs": []any{"password"}, "phase": "Running"}),
		database("starting", map[string]any{"observedGeneration": int64(2), "conditions": ready("False", "pods\nare starting "+strings.Repeat("x", 1000)), "outputs": map[string]any{"host": "db.prod"}}),
		database("waiting", map[string]any{"conditions": ready("Unknown", "requires Disk prod/a: it does not exist"+vocabulary.RepairedMeanwhile)}),
		database("stale", map[string]any{"observedGeneration": int64(1), "conditions": ready("True", "")}),
		database("new", nil),
		database("lost", map[string]any{"conditions": ready("True", ""), "secretOutputs": []any{"password"}}),
		database("forged", map[string]any{"conditions": ready("True", ""), "secretOutputs": []any{"password"}}),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "forged-outputs", OwnerReferences: []metav1.OwnerReference{{UID: "another"}}}, Data: map[string][]byte{"password": nil}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "main-outputs", OwnerReferences: []metav1.OwnerReference{{UID: "main"}}}, Data: map[string][]byte{"password": []byte("swordfish")}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "main"}},
	}
}

func TestRequirementsAreLoadedOrNamed(t *testing.T) {
	inputs := map[string]string{"db.host": "host", "db.password": "password"}
	tests := []struct {
		name, kind, object string
		requirement        Requirement
		namespaces         []string
		missing            string // a prefix; empty: nothing is missing
		loaded             map[string][]byte
		deleted            bool
	}{
		{name: "ready", kind: "Database", object: "main", loaded: map[string][]byte{}},
		{name: "inputs", kind: "Database", object: "main", requirement: Requirement{Inputs: inputs}, loaded: map[string][]byte{"db.host": []byte("db.prod"), "db.password": []byte("swordfish")}},
		{name: "a condition that is true", kind: "Database", object: "starting", requirement: Requirement{Condition: "has(self.status.outputs)"}, loaded: map[string][]byte{}},
		{name: "a condition that is false", kind: "Database", object: "main", requirement: Requirement{Condition: "self.status.phase == 'Idle'"},
			missing: "requires Database prod/main: not Ready: the condition is false: self.status.phase == 'Idle'"},
		{name: "a condition that fails", kind: "Database", object: "main", requirement: Requirement{Condition: "self.status.size > 3"}, missing: "requires Database prod/main: not Ready: the condition: no such key: size"},
		{name: "values of a Secret are hidden", kind: "Secret", object: "main-outputs", requirement: Requirement{APIVersion: "v1", Condition: "self.data.password == 'c3dvcmRmaXNo'"},
			missing: "requires Secret prod/main-outputs: not Ready: the condition: no such key: data"},
		{name: "a type of Kubernetes", kind: "ConfigMap", object: "main", requirement: Requirement{APIVersion: "v1"}, loaded: map[string][]byte{}},
		{name: "it does not exist", kind: "Database", object: "gone", missing: "requires Database prod/gone: it does not exist"},
		{name: "not ready", kind: "Database", object: "starting", missing: "requires Database prod/starting: not Ready: Because: pods are starting xxx"},
		{name: "a component that waits", kind: "Database", object: "waiting", missing: "requires Database prod/waiting: not Ready: condition Ready is Unknown: Because: requires Disk prod/a: it does not exist$"},
		{name: "not observed", kind: "Database", object: "stale", missing: "requires Database prod/stale: not Ready: the latest change is not observed yet"},
		{name: "no status", kind: "Database", object: "new", missing: "requires Database prod/new: not Ready: has no condition Ready yet"},
		{name: "not served", kind: "Cache", object: "main", missing: "requires Cache prod/main: the API server does not serve the type example.com/v1 Cache"},
		{name: "no output", kind: "Database", object: "main", requirement: Requirement{Inputs: map[string]string{"a": "port", "b": "host"}}, missing: "requires Database prod/main: it has no output port yet"},
		{name: "no Secret", kind: "Database", object: "lost", requirement: Requirement{Inputs: map[string]string{"a": "password"}}, missing: "requires Database prod/lost: it has no output password yet"},
		{name: "the Secret of another owner", kind: "Database", object: "forged", requirement: Requirement{Inputs: map[string]string{"a": "password"}}, missing: "requires Database prod/forged: it has no output password yet"},
		{name: "no namespace", kind: "Zone", object: "eu", missing: `requires Zone eu: it has no namespace, and the option RequireNamespaces of the operator does not have "*"`},
		{name: "no namespace, allowed", kind: "Zone", object: "eu", namespaces: []string{"*"}, loaded: map[string][]byte{}},
		{name: "in deletion nothing is missing", kind: "Database", object: "gone", requirement: Requirement{Inputs: inputs}, deleted: true},
		{name: "in deletion the inputs count", kind: "Database", object: "starting", requirement: Requirement{Inputs: map[string]string{"a": "host"}}, deleted: true, loaded: map[string][]byte{"a": []byte("db.prod")}},
		{name: "in deletion a mistake is in nobody's way", kind: "Database", object: "a/b", requirement: Requirement{Inputs: inputs}, deleted: true},
		{name: "in deletion another namespace is not read", kind: "Database", object: "main", requirement: Requirement{Namespace: "shared", Inputs: inputs}, deleted: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, loaded := required(0, test.kind, test.object, test.requirement)
			component := app.DeepCopy()
			if test.deleted {
				component.DeletionTimestamp = new(metav1.NewTime(time.Unix(1, 0)))
			}
			absent, _ := Load(t.Context(), fake.NewClientBuilder().WithObjects(requirementObjects()...).Build(), testTerms(test.namespaces...), component, []Found{r})
			missing := errors.Join(absent.Missing...)
			if len(absent.Failed) > 0 || (test.missing == "") != (missing == nil) || missing != nil && !strings.HasPrefix(missing.Error()+"$", test.missing) {
				t.Errorf("missing: %v, want %q; failed: %v", missing, test.missing, absent.Failed)
			}
			if missing != nil && (strings.Contains(missing.Error(), "\n") || len(missing.Error()) > 300) {
				t.Errorf("the message is no short line: %v", missing)
			}
			if diff := cmp.Diff(test.loaded, *loaded); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAForbiddenReadNamesTheRuleThatIsLacking(t *testing.T) {
	for resource, want := range map[string]string{
		"databases": "spec.requires[0]: requires Database prod/main: read it: the operator lacks rights: in namespace prod rules: [{apiGroups: [example.com], resources: [databases], verbs: [get, list, watch]}]; add them to its role, ",
		"secrets":   "spec.requires[0]: requires Database prod/main: read Secret prod/main-outputs: the operator lacks rights: in namespace prod rules: [{apiGroups: [''], resources: [secrets], verbs: [get, list, watch]}]; add them to its role, ",
	} {
		refusing := fake.NewClientBuilder().WithObjects(requirementObjects()...).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, isSecret := object.(*corev1.Secret); isSecret == (resource == "secrets") {
					return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, key.Name, errors.New("no"))
				}
				return c.Get(ctx, key, object, options...)
			},
		}).Build()
		r, _ := required(0, "Database", "main", Requirement{Inputs: map[string]string{"a": "password"}})
		absent, _ := Load(t.Context(), refusing, testTerms(), app, []Found{r})
		if err := errors.Join(absent.Failed...); !apierrors.IsForbidden(errors.Unwrap(absent.Failed[0])) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got the error %v, want %s", err, want)
		}
	}
}

func TestRequirementsAreReadOnceAndWatched(t *testing.T) {
	inputs := Requirement{Inputs: map[string]string{"a": "password"}}
	a, _ := required(0, "Database", "main", inputs)
	b, _ := required(1, "Database", "main", Requirement{Inputs: map[string]string{"b": "password"}})
	c, _ := required(2, "Database", "gone", Requirement{})
	ctx := confidential.Start(t.Context(), false)
	_, versions := Load(ctx, fake.NewClientBuilder().WithObjects(requirementObjects()...).Build(), testTerms(), app, []Found{a, b, c})
	if !confidential.Is(ctx) {
		t.Error("it is not noted that a Secret was read")
	}
	var got []string
	for _, v := range versions {
		got = append(got, fmt.Sprintf("%s %s/%s %t", v.Type.Resource, v.Namespace, v.Name, v.ResourceVersion != ""))
	}
	if diff := cmp.Diff([]string{"databases prod/main true", "secrets prod/main-outputs true", "databases prod/gone false"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestNotesNameTheOriginOfInputs(t *testing.T) {
	a, loaded := required(0, "Database", "main", Requirement{Inputs: map[string]string{"db.password": "password", "db.host": "host"}})
	b, _ := required(1, "Zone", "eu", Requirement{Inputs: map[string]string{"zone": "name"}})
	c, _ := required(2, "Database", "other", Requirement{})
	*loaded = map[string][]byte{"db.password": []byte("swordfish")}
	var got []string
	for _, note := range testTerms().Notes([]Found{a, {}, b, c}, app) {
		got = append(got, note.Key.String()+": "+note.Message)
	}
	want := []string{"Database prod/main: its outputs become the parameters db.host, db.password", "Zone eu: its outputs become the parameters zone"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func TestInputsAreParameters(t *testing.T) {
	parameters := map[string]any{"size": "3", "db": map[string]any{"host": "old", "port": "1"}}
	before := fmt.Sprint(parameters)
	r, loaded := required(0, "Database", "main", Requirement{Inputs: map[string]string{"db.host": "host", "new.deep.value": "host", "later": "host"}})
	*loaded = map[string][]byte{"db.host": []byte("h"), "new.deep.value": []byte("v")}
	got := WithInputs([]Found{r}, func() map[string]any { return parameters })
	want := map[string]any{"size": "3", "db": map[string]any{"host": "h", "port": "1"}, "new": map[string]any{"deep": map[string]any{"value": "v"}}}
	if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(parameters) != before {
		t.Errorf("parameters %v (-want +got):\n%s", parameters, diff)
	}
	if got := WithInputs(nil, nil); got != nil {
		t.Errorf("without inputs: %v", got)
	}
	if sum, loads := r.Digest(digest.Hasher{Key: []byte("k")}); sum == "" || loads {
		t.Errorf("the digest is %q, and of the revision: %t, although the inputs are among the parameters", sum, loads)
	}
}
