// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/rbacrules"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/untyped"
	"github.com/corbel-run/corbel/pkg/component"
)

// offlineCommands returns the commands that need no cluster.
func (o Options[T]) offlineCommands() []*cobra.Command {
	var files []string
	var namespace, account string
	ofFiles := func(use, short string, run func(ctx context.Context, objects []*unstructured.Unstructured, out io.Writer) error) *cobra.Command {
		command := &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				objects, err := o.rendered(c.Context(), files, c.InOrStdin(), c.ErrOrStderr())
				if err != nil {
					return err
				}
				return run(c.Context(), objects, c.OutOrStdout())
			},
		}
		command.Flags().StringSliceVarP(&files, "filename", "f", nil, "files or folders with components as YAML or JSON; - is the standard input")
		_ = command.MarkFlagRequired("filename") // the flag exists
		return command
	}
	rbac := ofFiles("rbac -f FILE", "Print the rights that the operator needs for what is rendered for components, without a cluster",
		func(_ context.Context, objects []*unstructured.Unstructured, out io.Writer) error {
			return o.printRights(objects, namespace, account, out)
		})
	rbac.Flags().StringVarP(&namespace, "namespace", "n", "default", "the namespace of the operator")
	rbac.Flags().StringVar(&account, "service-account", o.Name, "the name of the service account, and of the roles")
	return []*cobra.Command{
		ofFiles("render -f FILE", "Print the manifests of components as they are rendered for the installation, without a cluster; values of Secrets are masked",
			func(_ context.Context, objects []*unstructured.Unstructured, out io.Writer) error {
				return printMasked(objects, out)
			}),
		ofFiles("images -f FILE", "Print the images of what is rendered for components, without a cluster",
			func(_ context.Context, objects []*unstructured.Unstructured, out io.Writer) error {
				for _, image := range imagesOf(objects) {
					fmt.Fprintln(out, image)
				}
				return nil
			}),
		rbac,
		{
			Use: "crd", Short: "Print the CustomResourceDefinitions of the operator", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				definitions, err := o.definitions()
				if err != nil {
					return err
				}
				if len(definitions) == 0 {
					return errors.New("this program was built without its CustomResourceDefinitions: its author can add them with the option CRDs")
				}
				return printObjects(definitions, c.OutOrStdout())
			},
		},
	}
}

// definitions returns the CustomResourceDefinitions of the option CRDs.
func (o Options[T]) definitions() (definitions []*unstructured.Unstructured, err error) {
	if o.CRDs == nil {
		return nil, nil
	}
	err = fs.WalkDir(o.CRDs, ".", func(name string, entry fs.DirEntry, err error) error {
		if ext := filepath.Ext(name); err != nil || entry.IsDir() || ext != ".yaml" && ext != ".yml" && ext != ".json" {
			return err
		}
		text, err := fs.ReadFile(o.CRDs, name)
		if err != nil {
			return err
		}
		objects, err := document.Decode(name, text)
		definitions = append(definitions, objects...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("the option CRDs: %w", err)
	}
	return definitions, nil
}

// readComponents reads the components in files and folders.
func readComponents(names []string, in io.Reader) (objects []*unstructured.Unstructured, err error) {
	for _, name := range names {
		files := []string{name}
		if info, err := os.Stat(name); name != "-" && err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(name, "*.yaml")); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			var text []byte
			if file == "-" {
				text, err = io.ReadAll(in)
			} else {
				text, err = os.ReadFile(file)
			}
			if err != nil {
				return nil, err
			}
			read, err := document.Decode(file, text)
			if err != nil {
				return nil, err
			}
			objects = append(objects, read...)
		}
	}
	if len(objects) == 0 {
		return nil, errors.New("there is no component in the files")
	}
	return objects, nil
}

// rendered returns the rendered objects of the components in files. Notes go to a writer of their
// own.
func (o Options[T]) rendered(ctx context.Context, files []string, in io.Reader, notes io.Writer) ([]*unstructured.Unstructured, error) {
	components, err := readComponents(files, in)
	if err != nil {
		return nil, err
	}
	scheme, err := o.Scheme()
	if err != nil {
		return nil, err
	}
	definitions, err := o.definitions()
	if err != nil {
		return nil, err
	}
	reconciler, err := o.reconciler()
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, manifest := range components {
		title := report.Key{Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName()}.String()
		obj, err := o.decode(scheme, definitions, manifest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		objects, remarks, err := reconciler.RenderOffline(ctx, obj)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		for _, remark := range remarks {
			fmt.Fprintf(notes, "%s: %s\n", title, remark)
		}
		plain, err := untyped.List(objects, scheme)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		all = append(all, plain...)
	}
	return all, nil
}

// decode returns a component with the defaults of its definition, if that is known.
func (o Options[T]) decode(scheme *runtime.Scheme, definitions []*unstructured.Unstructured, manifest *unstructured.Unstructured) (T, error) {
	obj := o.newComponent()
	kind, err := o.kind(scheme)
	if err != nil {
		return obj, err
	}
	if got := manifest.GroupVersionKind(); got != kind {
		return obj, fmt.Errorf("it is of the type %s, and this is the operator for %s", got, kind)
	}
	for _, definition := range definitions {
		if err := setDefaults(manifest.Object, definition, kind); err != nil {
			return obj, err
		}
	}
	unstructured.RemoveNestedField(manifest.Object, "status")
	if manifest.GetNamespace() == "" {
		manifest.SetNamespace("default")
	}
	unknown, err := untyped.Into(manifest.Object, obj)
	return obj, errors.Join(append(unknown, err)...)
}

// setDefaults adds the defaults of a definition to an object of its kind.
func setDefaults(object map[string]any, definition *unstructured.Unstructured, kind schema.GroupVersionKind) error {
	crd := apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &crd); err != nil {
		return fmt.Errorf("the definition %s: %w", definition.GetName(), err)
	}
	if crd.Spec.Group != kind.Group || crd.Spec.Names.Kind != kind.Kind {
		return nil
	}
	for _, version := range crd.Spec.Versions {
		if version.Name == kind.Version && version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			return addDefaults(object, version.Schema.OpenAPIV3Schema)
		}
	}
	return nil
}

// addDefaults adds the defaults of a schema to a value, as an API server does.
func addDefaults(value any, schema *apiextensionsv1.JSONSchemaProps) error {
	switch value := value.(type) {
	case map[string]any:
		for name, property := range schema.Properties {
			if _, set := value[name]; !set && property.Default != nil {
				var standard any
				if err := json.Unmarshal(property.Default.Raw, &standard); err != nil {
					return fmt.Errorf("the default of %s: %w", name, err)
				}
				value[name] = standard
			}
			if child, set := value[name]; set {
				if err := addDefaults(child, &property); err != nil {
					return err
				}
			}
		}
		if further := schema.AdditionalProperties; further != nil && further.Schema != nil {
			for _, name := range slices.Sorted(maps.Keys(value)) {
				if err := addDefaults(value[name], further.Schema); err != nil {
					return err
				}
			}
		}
	case []any:
		if schema.Items != nil && schema.Items.Schema != nil {
			for _, item := range value {
				if err := addDefaults(item, schema.Items.Schema); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// printMasked prints manifests without the values of Secrets.
func printMasked(objects []*unstructured.Unstructured, out io.Writer) error {
	shown := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		if object.GetKind() == "Secret" && object.GroupVersionKind().Group == "" {
			object = object.DeepCopy()
			for _, field := range []string{"data", "stringData"} {
				switch values := object.Object[field].(type) {
				case nil:
				case map[string]any:
					for key := range values {
						values[key] = difference.Masked
					}
				default: // the API server refuses it, and it may be a value
					object.Object[field] = difference.Masked
				}
			}
		}
		shown = append(shown, object)
	}
	return printObjects(shown, out)
}

// printObjects prints objects as YAML documents.
func printObjects(objects []*unstructured.Unstructured, out io.Writer) error {
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// imagesOf returns the images of all containers and image volumes.
func imagesOf(objects []*unstructured.Unstructured) []string {
	found := map[string]bool{}
	for _, object := range objects {
		untyped.EachImage(object, func(holder map[string]any, field string) {
			if image, ok := holder[field].(string); ok && image != "" {
				found[image] = true
			}
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// printRights prints the roles of an operator that renders the objects.
func (o Options[T]) printRights(objects []*unstructured.Unstructured, namespace, account string, out io.Writer) error {
	scheme, err := o.Scheme()
	if err != nil {
		return err
	}
	kind, err := o.kind(scheme)
	if err != nil {
		return err
	}
	guessed, _ := apimeta.UnsafeGuessKindToResource(kind)
	resource := guessed.Resource
	definitions, err := o.definitions()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		of, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		if plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural"); of == kind.Kind {
			resource = cmp.Or(plural, resource)
		}
	}
	kinds := rbacrules.OfObjects(objects)
	for i := range kinds {
		kinds[i].Optional = false // the objects are there, so their kinds are needed
	}
	text, err := rbacrules.Operator{Account: account, Group: kind.Group, Resource: resource, Namespace: namespace, Namespaced: o.Reconciler.Operator.Namespaced}.YAML(kinds)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// reconciler returns the reconciler without a manager.
func (o Options[T]) reconciler() (*component.Reconciler[T], error) {
	if o.Generator == nil {
		return nil, errors.New("the option Generator is missing: it makes the generator of the dependent objects")
	}
	generator, err := o.Generator()
	if err != nil {
		return nil, err
	}
	if o.Reconciler.Finalizer == nil {
		o.Reconciler.Finalizer = new(o.Name + "/operator")
	}
	reconciler := component.NewReconciler[T](o.Name, generator, o.Reconciler)
	if o.Hooks != nil {
		o.Hooks(reconciler)
	}
	return reconciler, nil
}
