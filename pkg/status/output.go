// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	celtypes "cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxOutput bounds the value of an output.
//
// Unit: bytes
// Limit: the value of an output.
const maxOutput = 1024

// Output is a compiled expression for an output: a value that an object publishes. It is safe for concurrent use.
type Output struct {
	program cel.Program
	// plain: the expression uses nothing of the object but its name, its namespace and its status.
	plain bool
	// path is the expression if it is a path of fields and indexes, so that its errors quote no value; else it is empty.
	path string
}

// CompileOutput compiles a CEL expression that gives a value of the object self: a string, a number or a bool, or an optional one. The
// language is that of CompileReadyWhen.
func CompileOutput(expression string) (*Output, error) {
	ast, program, err := compile(expression, isScalar, "a string, a number or a bool")
	if err != nil {
		return nil, err
	}
	output := &Output{program: program, plain: isPlain(ast)}
	if isPath(ast) {
		output.path = expression
	}
	return output, nil
}

// isScalar reports whether an output may have values of the type, or may turn out to have such values.
func isScalar(t *cel.Type) bool {
	if t.Kind() == celtypes.OpaqueKind && t.TypeName() == "optional_type" && len(t.Parameters()) == 1 {
		return isScalar(t.Parameters()[0])
	}
	switch t.Kind() {
	case celtypes.StringKind, celtypes.IntKind, celtypes.UintKind, celtypes.DoubleKind, celtypes.BoolKind, celtypes.DynKind, celtypes.TypeParamKind:
		return true
	}
	return false
}

// isPlain reports whether self is used in self.status, self.metadata.name and self.metadata.namespace only.
func isPlain(ast *cel.Ast) bool {
	isSelf := func(e celast.NavigableExpr) bool { return e.Kind() == celast.IdentKind && e.AsIdent() == "self" }
	for _, self := range celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), isSelf) {
		field, parent := fieldOf(self)
		if field == "metadata" {
			field, _ = fieldOf(parent)
			field = "metadata." + field
		}
		if field != "status" && field != "metadata.name" && field != "metadata.namespace" {
			return false
		}
	}
	return true
}

// isPath reports whether the expression consists of fields and constant indexes, such as self.spec.rules[0].host.
func isPath(ast *cel.Ast) bool {
	return len(celast.MatchDescendants(celast.NavigateAST(ast.NativeRep()), func(e celast.NavigableExpr) bool {
		switch e.Kind() {
		case celast.IdentKind, celast.SelectKind:
			return false
		case celast.LiteralKind:
			return e.AsLiteral().Type() != celtypes.IntType
		case celast.CallKind:
			return e.AsCall().FunctionName() != operators.Index || e.AsCall().Args()[1].Kind() != celast.LiteralKind
		}
		return true
	})) == 0
}

// fieldOf returns the field that is selected of an expression; empty if none is.
func fieldOf(e celast.NavigableExpr) (field string, parent celast.NavigableExpr) {
	parent, exists := e.Parent()
	switch {
	case !exists:
	case parent.Kind() == celast.SelectKind:
		field = parent.AsSelect().FieldName()
	case parent.Kind() == celast.CallKind && parent.AsCall().FunctionName() == operators.OptSelect && len(parent.AsCall().Args()) == 2:
		if name := parent.AsCall().Args()[1]; name.Kind() == celast.LiteralKind {
			field, _ = name.AsLiteral().Value().(string)
		}
	}
	return field, parent
}

// IsPlain reports whether the expression uses nothing of an object but its name, its namespace and its status.
func (o *Output) IsPlain() bool { return o.plain }

// Evaluate returns the value that the object has. The values of a Secret are decoded. Found is false if the value is optional and not
// there. An error quotes at most the status of the object, and of a secret output no value.
func (o *Output) Evaluate(obj *unstructured.Unstructured, secret bool) (value string, found bool, err error) {
	result, err := evaluate(o.program, decoded(obj))
	if err == nil {
		value, found, err = valueOf(result)
	} else if o.path == "" && (secret || !o.plain) {
		err = errors.New("its expression fails, with an error that may quote values and is not shown")
	}
	if err != nil && o.path != "" {
		err = fmt.Errorf("%s: %w", o.path, err)
	}
	return value, found, err
}

func valueOf(result ref.Val) (value string, found bool, err error) {
	if optional, is := result.(*celtypes.Optional); is {
		if !optional.HasValue() {
			return "", false, nil
		}
		result = optional.GetValue()
	}
	switch value, err = textOf(result); {
	case err != nil:
		return "", false, err
	case len(value) > maxOutput:
		return "", false, fmt.Errorf("the value has %d bytes, and at most %d are allowed", len(value), maxOutput)
	case !utf8.ValidString(value):
		return "", false, errors.New("the value is no text in UTF-8")
	}
	return value, true, nil
}

func textOf(value ref.Val) (string, error) {
	switch v := value.(type) {
	case celtypes.String:
		return string(v), nil
	case celtypes.Int:
		return strconv.FormatInt(int64(v), 10), nil
	case celtypes.Uint:
		return strconv.FormatUint(uint64(v), 10), nil
	case celtypes.Double:
		return strconv.FormatFloat(float64(v), 'f', -1, 64), nil
	case celtypes.Bool:
		return strconv.FormatBool(bool(v)), nil
	}
	return "", fmt.Errorf("the expression gives %s, not a string, a number or a bool", value.Type().TypeName())
}

// decoded returns the content of an object, of a Secret with decoded data.
func decoded(obj *unstructured.Unstructured) map[string]any {
	data, _ := obj.Object["data"].(map[string]any)
	if gvk := obj.GroupVersionKind(); gvk.Group != "" || gvk.Kind != "Secret" || data == nil {
		return obj.Object
	}
	plain := make(map[string]any, len(data))
	for key, value := range data {
		text, _ := value.(string)
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			content = []byte(text)
		}
		plain[key] = string(content)
	}
	content := maps.Clone(obj.Object)
	content["data"] = plain
	return content
}
