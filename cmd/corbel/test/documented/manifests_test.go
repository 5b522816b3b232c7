// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	kustomizetypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// exampleKinds are the kinds in the documents that no example of the repository defines.
var exampleKinds = []schema.GroupVersionKind{
	{Group: "example.com", Version: "v1", Kind: "Greeting"},
	{Group: "example.com", Version: "v1", Kind: "Agent"},
	{Group: "example.com", Version: "v1", Kind: "Mailer"},
	{Group: "example.com", Version: "v1", Kind: "Database"},
	{Group: "example.com", Version: "v1", Kind: "App"},
	{Group: "queue.example.com", Version: "v1", Kind: "Queue"},
	{Group: "store.example.com", Version: "v1alpha1", Kind: "Store"}, // of the tutorial
	{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
	{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
}

// exampleDefinitions returns the definitions of the kinds of examples. They allow all fields.
func exampleDefinitions() []*apiextensionsv1.CustomResourceDefinition {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range exampleKinds {
		d := &apiextensionsv1.CustomResourceDefinition{}
		singular := strings.ToLower(kind.Kind)
		d.Name = singular + "s." + kind.Group
		d.Spec.Group, d.Spec.Scope = kind.Group, apiextensionsv1.NamespaceScoped
		d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: kind.Kind, ListKind: kind.Kind + "List"}
		d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: kind.Version, Served: true, Storage: true,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}}
		definitions = append(definitions, d)
	}
	return definitions
}

// TestTheServerAcceptsEveryManifest sends the objects of all documents to an API server, as dry runs. Templates are rendered
// before. The definitions of components of examples are those of the examples, so that their fields exist.
func TestTheServerAcceptsEveryManifest(t *testing.T) {
	config := env.Shared(t).Config()
	folders := []string{filepath.Join(root, "examples/shop/config/crd"), filepath.Join(root, "examples/shop/chart/crds")}
	check.Must(envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: folders, CRDs: exampleDefinitions()}))(t)
	c := check.Must(client.New(config, client.Options{}))(t)
	total := 0
	for _, p := range pages(t) {
		blocks, _ := p.split()
		for _, b := range blocks {
			var objects []*unstructured.Unstructured
			var err error
			switch b.language {
			case "yaml":
				objects, err = decode(whole(b.text))
			case "gotemplate":
				objects, err = render(t.Context(), b.text)
			}
			if err != nil {
				t.Errorf("%s:%d: %v", p.name, b.line, err)
			}
			for _, object := range objects {
				total++
				if err := accepted(t.Context(), c, object); err != nil {
					t.Errorf("%s:%d: %v", p.name, b.line, err)
				}
			}
		}
	}
	if total < 30 {
		t.Errorf("there are %d objects only: something is not seen", total)
	}
}

// documentStart is the line above a document of a stream.
var documentStart = regexp.MustCompile(`(?m)^---.*$`)

// decode returns the objects of a stream of documents. A field that is defined more than once is a mistake.
func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, document := range documentStart.Split(text, -1) {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// comment is a line of YAML without content.
var comment = regexp.MustCompile(`(?m)^#.*\n`)

// whole returns the object that a list is a part of: lists are rules of a role.
func whole(text string) string {
	if !strings.HasPrefix(comment.ReplaceAllString(text, ""), "- ") {
		return text
	}
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: part}\nrules:\n" + text
}

// render renders a template: for the Helm generator if it speaks of a release, otherwise for that of Go templates. A part
// of a manifest, which is indented, belongs to the metadata of an object.
func render(ctx context.Context, text string) ([]*unstructured.Unstructured, error) {
	if strings.HasPrefix(text, " ") {
		indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
		text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: part" + strings.ReplaceAll("\n"+text, "\n"+indent, "\n  ")
	}
	var generator manifests.Generator
	var err error
	if strings.Contains(text, ".Release.") {
		generator, err = helm.New(fstest.MapFS{
			"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: shop\nversion: 1.0.0\n")},
			"templates/a.yaml": {Data: []byte(text)},
		}, ".", helm.Options{})
	} else {
		generator, err = gotemplate.New(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, ".", gotemplate.Options{})
	}
	if err != nil {
		return nil, err
	}
	rendered, err := manifests.Generate(ctx, generator, "default", "main", types.UnstructurableMap{"text": "good morning", "password": "swordfish"})
	var objects []*unstructured.Unstructured
	for _, object := range rendered {
		o, isUnstructured := object.(*unstructured.Unstructured)
		if !isUnstructured {
			return nil, fmt.Errorf("the generator returns a %T", object)
		}
		objects = append(objects, o)
	}
	return objects, err
}

// accepted returns the error of the API server for an object. What has no kind is a kustomization, or the spec of a Shop.
func accepted(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	if object.GetKind() == "" {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		err = yaml.UnmarshalStrict(text, &kustomizetypes.Kustomization{})
		if _, hasSpec := object.Object["spec"]; !hasSpec || err == nil {
			return err
		}
		object.SetAPIVersion("shop.example.com/v1alpha1")
		object.SetKind("Shop")
		object.SetName("part")
		if _, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "databaseSecret"); !found { // it is required
			if err := unstructured.SetNestedField(object.Object, "database", "spec", "databaseSecret"); err != nil {
				return err
			}
		}
	}
	namespaced, err := c.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced {
		object.SetNamespace("default") // those of the documents do not exist
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.DryRunAll, client.ForceOwnership, client.FieldOwner("documents"))
}
