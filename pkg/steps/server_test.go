// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"os"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{}))
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

// changed installs a definition of another group and returns a client and a bucket of it.
func changed(t *testing.T, group string, change func(*apiextensionsv1.CustomResourceDefinition)) (client.Client, *Bucket) {
	t.Helper()
	crd := definition()
	crd.Name, crd.Spec.Group = "buckets."+group, group
	change(crd)
	e := env.Shared(t)
	if _, err := envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}); err != nil {
		t.Fatal(err)
	}
	gv := groupVersion
	gv.Group = group
	c, err := client.New(e.Config(), client.Options{Scheme: withBucket(gv)})
	if err != nil {
		t.Fatal(err)
	}
	b := &Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if err := c.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return c, b
}

func status(crd *apiextensionsv1.CustomResourceDefinition) props {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
}

func TestWhatTheServerDoesNotKeepLocksNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*apiextensionsv1.CustomResourceDefinition)
		fields []string // nil: there is no status subresource
	}{
		"steps": {func(crd *apiextensionsv1.CustomResourceDefinition) { delete(status(crd), "steps") }, []string{"status.steps"}},
		"record": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			delete(status(crd)["steps"].Items.Schema.Properties, "lock")
		}, []string{"status.steps[].lock"}},
		"key": {func(crd *apiextensionsv1.CustomResourceDefinition) {
			delete(status(crd)["steps"].Items.Schema.Properties["lock"].Properties, "attemptKey")
		}, []string{"status.steps[].lock"}},
		"nothing": {func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, b := changed(t, name+"-lost.test.corbel.run", tc.change)
			err := steps.NewLock(b, c, step).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
				t.Error("the task ran")
				return c, nil
			})
			pruned, isPruned := errors.AsType[*patch.PrunedError](err)
			_, isMissing := errors.AsType[*patch.NoStatusSubresourceError](err)
			if isPruned != (tc.fields != nil) || isMissing != (tc.fields == nil) || isPruned && pruned.Fields[0] != tc.fields[0] {
				t.Errorf("error: %v", err)
			}
			if after := read(t, c); len(after.Status.Steps) != 0 || len(b.Status.Steps) != 0 || after.ResourceVersion != b.ResourceVersion {
				t.Errorf("left on the server: %+v", after.Status)
			}
		})
	}
}
