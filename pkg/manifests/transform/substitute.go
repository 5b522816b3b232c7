// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/untyped"
)

var (
	variableName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	variablePattern = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// Substitute returns a transformer that puts values in place of ${NAME} in all
// texts of the objects, but not in keys, type, name and namespace. A text stays a
// text: a value cannot change the structure of the object. Names without a value
// stay as they are, and $${NAME} becomes ${NAME} if NAME has one. Without a
// target all objects are changed.
func Substitute(values map[string]string, t *v1alpha1.PatchTarget) (manifests.ObjectTransformer, error) {
	parsed, err := parseTarget(t)
	errs := []error{err}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !variableName.MatchString(name) {
			errs = append(errs, fmt.Errorf("value %q: a name consists of letters, digits and underscores", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	values = maps.Clone(values)
	return manifests.ObjectTransformerFunc(func(namespace, _ string, objects []client.Object) ([]client.Object, error) {
		list, err := untyped.All(objects)
		if err != nil {
			return nil, err
		}
		for _, object := range list {
			if parsed.matches(object, namespace) {
				kind, name, own := object.GroupVersionKind(), object.GetName(), object.GetNamespace()
				substitute(object.Object, values)
				object.SetGroupVersionKind(kind)
				object.SetName(name)
				object.SetNamespace(own)
			}
		}
		return untyped.Objects(list), nil
	}), nil
}

func substitute(value any, values map[string]string) any {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			value[key] = substitute(child, values)
		}
	case []any:
		for i, child := range value {
			value[i] = substitute(child, values)
		}
	case string:
		return substituteText(value, values)
	}
	return value
}

func substituteText(text string, values map[string]string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return variablePattern.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimSuffix(found[strings.Index(found, "{")+1:], "}")
		value, known := values[name]
		switch {
		case !known:
			return found
		case strings.HasPrefix(found, "$$"):
			return found[1:]
		default:
			return value
		}
	})
}
