// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

// HelmOptions are options of EqualsHelmTemplate.
type HelmOptions struct {
	// Args are further arguments of helm template, such as --include-crds,
	// --skip-tests or --kube-version=1.37.0.
	Args []string
	// Normalize changes the objects of both sides before they are compared, for
	// example to remove annotations that only one side adds.
	Normalize func(object *unstructured.Unstructured)
}

// EqualsHelmTemplate compares the objects with the output of the command helm template for the
// chart, a folder or a package, with the parameters as values and with the namespace and the name
// of the case. The order means nothing, nor do comments and the layout of the YAML, and a List
// counts as its items.
//
// The command runs without the settings, plugins and repositories of the user. If there
// is no helm binary in PATH, the test is skipped.
func (c Case) EqualsHelmTemplate(t testing.TB, chart string, options HelmOptions) {
	t.Helper()
	binary, err := exec.LookPath("helm")
	if err != nil {
		t.Skipf("compare with helm template: there is no helm binary in PATH, so nothing is compared: %v", err)
	}
	rendered := c.Render(t)
	printed, err := c.helmTemplate(t.Context(), binary, t.TempDir(), chart, options.Args)
	if err != nil {
		t.Fatalf("helm template %s: %v", chart, err)
	}
	if err := compare(printed, rendered, options.Normalize); err != nil {
		t.Error(err)
	}
}

func (c Case) helmTemplate(ctx context.Context, binary, dir, chart string, args []string) ([]*unstructured.Unstructured, error) {
	values, err := yaml.Marshal(c.content())
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "values.yaml")
	if err := os.WriteFile(file, values, 0o600); err != nil {
		return nil, err
	}
	args = slices.Concat([]string{"template", c.Name, chart, "--values", file, "--namespace", c.Namespace}, args)
	command := exec.CommandContext(ctx, binary, args...)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	var output, messages bytes.Buffer
	command.Stdout, command.Stderr = &output, &messages
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(messages.String()))
	}
	return document.Decode("helm template", output.Bytes())
}

// compare reports objects that are only on one side, and differences.
func compare(printed, rendered []*unstructured.Unstructured, normalize func(*unstructured.Unstructured)) error {
	want, err := texts(printed, normalize)
	if err != nil {
		return err
	}
	got, err := texts(rendered, normalize)
	if err != nil {
		return err
	}
	var errs []error
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, inWant := want[name]
		g, inGot := got[name]
		switch {
		case !inGot:
			errs = append(errs, fmt.Errorf("%s: helm template prints it, the generator does not render it", name))
		case !inWant:
			errs = append(errs, fmt.Errorf("%s: the generator renders it, helm template does not print it", name))
		case w != g:
			errs = append(errs, fmt.Errorf("%s differs (-helm template +generator):\n%s", name, cmp.Diff(w, g)))
		}
	}
	return errors.Join(errs...)
}

// texts are the objects by their names. Equal names are counted.
func texts(objects []*unstructured.Unstructured, normalize func(*unstructured.Unstructured)) (map[string]string, error) {
	result := map[string]string{}
	var add func(object *unstructured.Unstructured) error
	add = func(object *unstructured.Unstructured) error {
		if object.IsList() {
			return object.EachListItem(func(item runtime.Object) error { return add(item.(*unstructured.Unstructured)) })
		}
		object = object.DeepCopy()
		if normalize != nil {
			normalize(object)
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", convert.Name(object), err)
		}
		name := object.GetAPIVersion() + " " + convert.Name(object)
		for n := 2; ; n++ {
			if _, taken := result[name]; !taken {
				break
			}
			name = fmt.Sprintf("%s %s (%d)", object.GetAPIVersion(), convert.Name(object), n)
		}
		result[name] = string(text)
		return nil
	}
	for _, object := range objects {
		if err := add(object); err != nil {
			return nil, err
		}
	}
	return result, nil
}
