// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	// maxOperations limits the operations of one JSON patch.
	//
	// Unit: operations
	// Limit: the operations of one JSON patch.
	maxOperations = 1000
	// maxCopied limits how many bytes the operations of one JSON patch may copy.
	//
	// Limit: what the operations of one JSON patch copy.
	maxCopied = 4 << 20
)

// operations are those of a JSON patch.
type operations struct{ patch jsonpatch.Patch }

func parseOperations(list []any) (operations, error) {
	if len(list) > maxOperations {
		return operations{}, fmt.Errorf("it has more than %d operations", maxOperations)
	}
	var errs []error
	for i, item := range list {
		if err := checkOperation(item); err != nil {
			errs = append(errs, fmt.Errorf("operation %d of %d: %w", i+1, len(list), err))
		}
	}
	if err := errors.Join(append(errs, checkSize(list))...); err != nil {
		return operations{}, err
	}
	encoded, err := json.Marshal(list)
	if err != nil {
		return operations{}, err
	}
	patch, err := jsonpatch.DecodePatch(encoded)
	return operations{patch: patch}, err
}

// checkOperation does not leave this to the library, because errors of that one contain values.
func checkOperation(item any) error {
	operation, ok := item.(map[string]any)
	if !ok {
		return errors.New("want a map with op and path")
	}
	kind, _ := operation["op"].(string)
	switch kind {
	case "add", "replace", "test":
		if _, ok := operation["value"]; !ok {
			return fmt.Errorf("%s needs a value", kind)
		}
	case "copy", "move":
		if _, ok := operation["from"].(string); !ok {
			return fmt.Errorf("%s needs from", kind)
		}
	case "remove":
	default:
		return fmt.Errorf("op %q, want add, remove, replace, move, copy or test", kind)
	}
	if path, _ := operation["path"].(string); path == "" {
		return fmt.Errorf("%s needs a path below the object", kind)
	}
	return nil
}

// apply returns the changed content; the given one is not changed.
func (o operations) apply(content map[string]any) (map[string]any, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = maxCopied
	if encoded, err = o.patch.ApplyWithOptions(encoded, options); err != nil {
		return nil, err
	}
	var changed map[string]any
	if err := utiljson.Unmarshal(encoded, &changed); err != nil || changed == nil {
		return nil, errors.New("the operations leave no object")
	}
	return changed, nil
}

// JSONPatch returns a transformer that changes the parameters with JSON patch
// operations (RFC 6902), in YAML or JSON.
func JSONPatch(patch string) (manifests.ParameterTransformer, error) {
	list, err := parseText(patch)
	if err != nil {
		return nil, err
	}
	if list.operations == nil {
		return nil, errors.New("want a list of JSON patch operations")
	}
	return manifests.ParameterTransformerFunc(func(_, _ string, parameters types.Unstructurable) (types.Unstructurable, error) {
		changed, err := list.operations.apply(valuesOf(parameters))
		return types.UnstructurableMap(changed), err
	}), nil
}

// valuesOf returns the parameters as a map, which must not be changed.
func valuesOf(parameters types.Unstructurable) map[string]any {
	if parameters != nil {
		if values := parameters.ToUnstructured(); values != nil {
			return values
		}
	}
	return map[string]any{}
}

// target is a v1alpha1.PatchTarget that is known to be right.
type target struct {
	group, version, kind, name, namespace *regexp.Regexp
	labels, annotations                   labels.Selector
	// secrets: only Secrets are meant.
	secrets bool
}

// parseTarget returns a target that matches everything for nil.
func parseTarget(t *v1alpha1.PatchTarget) (*target, error) {
	if t == nil {
		t = &v1alpha1.PatchTarget{}
	}
	var errs []error
	expression := func(field, text string) *regexp.Regexp {
		if text == "" {
			return nil
		}
		compiled, err := regexp.Compile("^(?:" + text + ")$")
		if err != nil {
			errs = append(errs, fmt.Errorf("target: %s: %w", field, err))
		}
		return compiled
	}
	selector := func(field, text string) labels.Selector {
		parsed, err := labels.Parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("target: %s: %w", field, err))
		}
		return parsed
	}
	parsed := &target{
		group: expression("group", t.Group), version: expression("version", t.Version), kind: expression("kind", t.Kind),
		name: expression("name", t.Name), namespace: expression("namespace", t.Namespace),
		labels: selector("labelSelector", t.LabelSelector), annotations: selector("annotationSelector", t.AnnotationSelector),
	}
	parsed.secrets = onlySecrets.MatchString(t.Kind) && fits(parsed.group, "") && fits(parsed.version, "v1")
	return parsed, errors.Join(errs...)
}

// onlySecrets matches the expressions for the kinds of Secrets and of their lists.
var onlySecrets = regexp.MustCompile(`^[\^(]*Secret(?:List)?[)$]*$`)

// matches reports whether the object is meant; objects without a namespace count
// as in the given one.
func (t *target) matches(object *unstructured.Unstructured, namespace string) bool {
	if own := object.GetNamespace(); own != "" {
		namespace = own
	}
	gvk := object.GroupVersionKind()
	return fits(t.group, gvk.Group) && fits(t.version, gvk.Version) && fits(t.kind, gvk.Kind) &&
		fits(t.name, object.GetName()) && fits(t.namespace, namespace) &&
		t.labels.Matches(labels.Set(object.GetLabels())) && t.annotations.Matches(labels.Set(object.GetAnnotations()))
}

func fits(expression *regexp.Regexp, value string) bool {
	return expression == nil || expression.MatchString(value)
}
