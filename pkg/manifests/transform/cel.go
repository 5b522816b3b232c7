// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
	"github.com/corbel-run/corbel/pkg/types"
)

const (
	// maxExpression bounds the text of an expression, in code points.
	//
	// Unit: characters
	// Limit: the text of an expression of transform.CEL.
	maxExpression = 16 << 10
	// maxCost bounds the work of one evaluation.
	//
	// Unit: units
	// Limit: the work of one evaluation; comparing a few fields costs less than a hundred.
	maxCost = 1_000_000
)

// Expression is a CEL expression that transforms. It is both a
// manifests.ParameterTransformer and a manifests.ObjectTransformer.
type Expression struct {
	sum
	program cel.Program
	target  *target
}

var (
	_ manifests.ParameterTransformer = &Expression{}
	_ manifests.ObjectTransformer    = &Expression{}
)

// CEL compiles an expression over self, the object or the parameters, and release, with the namespace and the name
// of the deployment. A map as result is merged into self: null removes a field, and lists are replaced. A list as
// result holds JSON patch operations.
//
// For objects, the target selects the changed ones; nil means all.
func CEL(expression string, t *v1alpha1.PatchTarget) (*Expression, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("set up the expression language: %w", err)
	}
	parsed, targetErr := parseTarget(t)
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, errors.Join(targetErr, fmt.Errorf("expression: %s", firstIssue(issues)))
	}
	if targetErr != nil {
		return nil, targetErr
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, fmt.Errorf("expression: %w", err)
	}
	return &Expression{digest.OfValues("expression", expression, t), program, parsed}, nil
}

// environment is built once: it costs far more than compiling an expression.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("self", cel.DynType), cel.Variable("release", cel.MapType(cel.StringType, cel.StringType)),
		cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(100), cel.RegexProgramSizeLimit(1000),
		// Not the validator for values of different types: expressions return maps.
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals()),
	)
})

func firstIssue(issues *cel.Issues) string {
	for _, issue := range issues.Errors() {
		return fmt.Sprintf("line %d, character %d: %s", issue.Location.Line(), issue.Location.Column()+1, issue.Message)
	}
	return issues.String()
}

// TransformParameters implements manifests.ParameterTransformer.
func (e *Expression) TransformParameters(namespace, name string, parameters types.Unstructurable) (types.Unstructurable, error) {
	values, err := convert.Values(parameters)
	if err != nil {
		return nil, err
	}
	changed, err := e.change(namespace, name, values)
	return types.UnstructurableMap(changed), err
}

// TransformObjects implements manifests.ObjectTransformer.
func (e *Expression) TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error) {
	return e.TransformObjectsContext(context.Background(), namespace, name, objects)
}

// TransformObjectsContext is TransformObjects that ends when the context does.
func (e *Expression) TransformObjectsContext(ctx context.Context, namespace, name string, objects []client.Object) ([]client.Object, error) {
	list, err := convert.ToUnstructuredList(objects)
	if err != nil {
		return nil, err
	}
	list, err = newBudget(ctx).each(list,
		func(object *unstructured.Unstructured) bool { return e.target.matches(object, namespace) }, "expression", maxObject,
		func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			content, err := e.change(namespace, name, runtime.DeepCopyJSON(object.Object))
			if err != nil {
				return nil, confidential.At(convert.Name(object), err)
			}
			changed := &unstructured.Unstructured{Object: content}
			return changed, checkObjectKey(object, changed)
		})
	if err != nil {
		return nil, err
	}
	return convert.ToObjects(list), nil
}

// checkObjectKey refuses a result that is no object any more.
func checkObjectKey(before, after *unstructured.Unstructured) error {
	if after.GetAPIVersion() == "" || after.GetKind() == "" || after.GetName() == "" {
		return fmt.Errorf("%s: apiVersion, kind and metadata.name must stay texts that are not empty", convert.Name(before))
	}
	return nil
}

// change evaluates the expression and changes the content by its result.
func (e *Expression) change(namespace, name string, content map[string]any) (map[string]any, error) {
	value, _, err := e.program.Eval(map[string]any{
		"self": content, "release": map[string]string{"namespace": namespace, "name": name},
	})
	if err != nil {
		if strings.Contains(err.Error(), "cost limit exceeded") {
			return nil, errors.New("the expression takes too long")
		}
		return nil, fmt.Errorf("expression: %w", err)
	}
	native, err := nativeOf(value, 0)
	if err == nil {
		err = checkSize(native)
	}
	if err != nil {
		return nil, err
	}
	switch native := native.(type) {
	case map[string]any:
		return mergeMap(content, native), nil
	case []any:
		list, err := parseOperations(native)
		if err != nil {
			return nil, err
		}
		return content, list.apply(content)
	default:
		return nil, fmt.Errorf("the expression gives %s, want a map or a list of JSON patch operations", value.Type().TypeName())
	}
}
