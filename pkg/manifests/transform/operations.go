// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
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
	// maxPointer limits a path in a message.
	maxPointer = 250
)

// operations are the operations of a JSON patch.
type operations []operation

// operation is one of a JSON patch. Its paths are the keys that lead to a value.
type operation struct {
	kind       string
	path, from pointer
	value      any
}

type pointer []string

var escaped, unescaped = strings.NewReplacer("~", "~0", "/", "~1"), strings.NewReplacer("~1", "/", "~0", "~")

// String returns the pointer as a JSON patch writes it.
func (p pointer) String() string {
	var text strings.Builder
	for _, key := range p {
		text.WriteString("/" + escaped.Replace(key))
	}
	return sentence.Shorten(text.String(), maxPointer)
}

func parseOperations(list []any) (operations, error) {
	if len(list) > maxOperations {
		return nil, fmt.Errorf("it has more than %d operations", maxOperations)
	}
	if err := checkSize(list); err != nil {
		return nil, err
	}
	// The values get the types of a JSON decoder, like the values of objects.
	encoded, err := json.Marshal(list)
	if err == nil {
		err = utiljson.Unmarshal(encoded, &list)
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	parsed := make(operations, len(list))
	for i, item := range list {
		if parsed[i], err = parseOperation(item); err != nil {
			errs = append(errs, fmt.Errorf("operation %d of %d: %w", i+1, len(list), err))
		}
	}
	return parsed, errors.Join(errs...)
}

func parseOperation(item any) (operation, error) {
	fields, ok := item.(map[string]any)
	if !ok {
		return operation{}, errors.New("want a map with op and path")
	}
	kind, _ := fields["op"].(string)
	o := operation{kind: kind, value: fields["value"]}
	switch kind {
	case "add", "replace", "test":
		if _, ok := fields["value"]; !ok {
			return o, fmt.Errorf("%s needs a value", kind)
		}
	case "copy", "move":
		if o.from, ok = pointerOf(fields["from"]); !ok {
			return o, fmt.Errorf("%s needs from, which starts with a slash", kind)
		}
	case "remove":
	default:
		return o, fmt.Errorf("op %q, want add, remove, replace, move, copy or test", kind)
	}
	if o.path, ok = pointerOf(fields["path"]); !ok {
		return o, fmt.Errorf("%s needs a path below the object, which starts with a slash", kind)
	}
	return o, nil
}

func pointerOf(value any) (pointer, bool) {
	text, _ := value.(string)
	keys := strings.Split(text, "/")
	for i, key := range keys {
		keys[i] = unescaped.Replace(key)
	}
	return keys[1:], len(keys) > 1 && keys[0] == ""
}

// apply changes the content. It also has changed the content if it fails.
func (o operations) apply(content map[string]any) error {
	copied := 0
	for i, operation := range o {
		if err := operation.apply(content, &copied); err != nil {
			return fmt.Errorf("operation %d of %d: %s %s: %w", i+1, len(o), operation.kind, operation.path, err)
		}
	}
	return nil
}

func (o operation) apply(content map[string]any, copied *int) (err error) {
	value := runtime.DeepCopyJSONValue(o.value)
	switch o.kind {
	case "test":
		return o.test(content)
	case "remove":
		return o.path.edit(content, true)
	case "replace":
		return o.path.edit(content, true, value)
	case "copy", "move":
		if value, err = o.from.find(content); err != nil {
			return err
		}
		if o.kind == "move" {
			err = o.from.edit(content, true)
		} else if *copied += jsonsize.Of(value, maxCopied); *copied > maxCopied {
			err = fmt.Errorf("the operations copy more than %d bytes", maxCopied)
		} else {
			value = runtime.DeepCopyJSONValue(value)
		}
	}
	if err != nil {
		return err
	}
	return o.path.edit(content, false, value)
}

// test compares the value at the path with the value of the operation. A value that does not exist
// is null.
func (o operation) test(content map[string]any) error {
	container, err := o.path[:len(o.path)-1].find(content)
	if err != nil {
		return err
	}
	found, _ := get(container, o.path[len(o.path)-1])
	want, _ := json.Marshal(o.value)
	if got, err := json.Marshal(found); err != nil || !bytes.Equal(got, want) {
		return errors.New("the value is another one")
	}
	return nil
}

// find returns the value at the pointer.
func (p pointer) find(content any) (any, error) {
	for i, key := range p {
		found, ok := get(content, key)
		if !ok {
			return nil, fmt.Errorf("%s does not exist", p[:i+1])
		}
		content = found
	}
	return content, nil
}

// edit removes the value at the pointer, if it is asked to, and adds the given values.
func (p pointer) edit(content any, removes bool, values ...any) error {
	parent, key := p[:len(p)-1], p[len(p)-1]
	container, err := parent.find(content)
	if err != nil {
		return fmt.Errorf("%w; add it first", err)
	}
	_, exists := get(container, key)
	switch c := container.(type) {
	case map[string]any:
		if removes && !exists {
			return fmt.Errorf("%s does not exist", p)
		}
		delete(c, key)
		for _, value := range values {
			c[key] = value
		}
		return nil
	case []any:
		at, removed := len(c), 0
		if removes {
			at, exists = index(key, len(c))
			removed = 1
		} else if exists = key == "-"; !exists {
			at, exists = index(key, len(c)+1)
		}
		if !exists {
			return fmt.Errorf("%s does not exist: the list has %d elements", p, len(c))
		}
		if c = slices.Replace(c, at, at+removed, values...); len(values) == removed {
			return nil // in place
		}
		return parent.edit(content, true, c)
	}
	return fmt.Errorf("%s is neither a map nor a list", parent)
}

func get(container any, key string) (value any, ok bool) {
	switch c := container.(type) {
	case map[string]any:
		value, ok = c[key]
	case []any:
		var i int
		if i, ok = index(key, len(c)); ok {
			value = c[i]
		}
	}
	return value, ok
}

// index returns which of this number of elements a key means. A negative one counts from the end, as
// in kustomize.
func index(key string, length int) (int, bool) {
	i, err := strconv.Atoi(key)
	if i < 0 {
		i += length
	}
	return i, err == nil && i >= 0 && i < length
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
	return parameterFunc{digest.OfValues("operations", patch), func(_, _ string, parameters types.Unstructurable) (types.Unstructurable, error) {
		values, err := convert.Values(parameters)
		if err == nil {
			values, err = decoded(values)
		}
		if err == nil {
			err = list.operations.apply(values)
		}
		return types.UnstructurableMap(values), err
	}}, nil
}

// decoded returns values with the types that a JSON decoder of Kubernetes uses: templates compare whole numbers.
func decoded(values map[string]any) (decoded map[string]any, err error) {
	encoded, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	err = utiljson.Unmarshal(encoded, &decoded)
	return decoded, err
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
