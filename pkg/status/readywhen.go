// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// maxExpression bounds the text of an expression, in code points.
	//
	// Unit: characters
	// Limit: the text of an expression in the annotation ready-when or the option ReadyWhen.
	maxExpression = 4096
	// maxCost bounds the work of one evaluation. Comparing a few fields costs
	// less than a hundred; walking a status of thousands of entries fits as well.
	//
	// Unit: units
	// Limit: the work of one evaluation; comparing a few fields costs less than a hundred.
	maxCost = 1_000_000
)

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	expression string
	program    cel.Program
}

// String returns the expression.
func (p *Program) String() string {
	if p == nil {
		return ""
	}
	return p.expression
}

// CompileReadyWhen compiles a CEL expression that reports whether an object is
// ready. The object is the variable self, as in
//
//	self.status.phase == 'Running' && self.status.replicas >= 2
//
// The standard library, its macros and optional values (self.?status.?phase) are
// available. The expression must give a bool. As long as evaluating it fails,
// because a field does not exist yet for example, the object is not ready.
func CompileReadyWhen(expression string) (*Program, error) {
	isBool := func(t *cel.Type) bool { return t.IsEquivalentType(cel.BoolType) || t.IsEquivalentType(cel.DynType) }
	_, program, err := compile(expression, isBool, "a bool")
	if err != nil {
		return nil, fmt.Errorf("ready-when %w", err)
	}
	return &Program{expression: expression, program: program}, nil
}

// compile compiles an expression over self that gives a value of an accepted type.
func compile(expression string, accepts func(*cel.Type) bool, accepted string) (*cel.Ast, cel.Program, error) {
	env, err := environment()
	if err != nil {
		return nil, nil, fmt.Errorf("%q: set up the expression language: %w", sentence(expression), err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return nil, nil, fmt.Errorf("%q: %s", sentence(expression), firstIssue(issues))
	}
	if given := ast.OutputType(); !accepts(given) {
		return nil, nil, fmt.Errorf("%q: gives %s, not %s", sentence(expression), given, accepted)
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost), cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		return nil, nil, fmt.Errorf("%q: %w", sentence(expression), err)
	}
	return ast, program, nil
}

// evaluate evaluates a program over the content of an object.
func evaluate(program cel.Program, content map[string]any) (ref.Val, error) {
	value, _, err := program.Eval(map[string]any{"self": content})
	if err != nil && strings.Contains(err.Error(), "cost limit exceeded") {
		err = errors.New("the expression takes too long")
	}
	return value, err
}

// environment is built once: it costs far more than compiling an expression.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("self", cel.DynType),
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true),
		cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxExpression),
		cel.ParserRecursionLimit(100),
		cel.RegexProgramSizeLimit(1000),
		cel.ExtendedValidations(),
	)
})

// firstIssue returns the first mistake with its position, without the excerpt
// that CEL adds on further lines.
func firstIssue(issues *cel.Issues) string {
	for _, issue := range issues.Errors() {
		return fmt.Sprintf("character %d: %s", issue.Location.Column()+1, issue.Message)
	}
	return issues.String()
}

// evaluateStatus replaces the rules of the type. Only if the expression is not true do they count:
// they tell whether the object failed, and why.
func (p *Program) evaluateStatus(obj *unstructured.Unstructured, byType Status) Status {
	ready, err := p.evaluate(obj)
	switch {
	case err == nil && ready:
		return Status{Readiness: Ready}
	case byType.Readiness == Failed || byType.Readiness == NotReady && byType.Message != "":
		return byType
	case err != nil:
		return Status{Message: "ready-when: " + err.Error()}
	default:
		return Status{Message: "ready-when is false: " + p.expression}
	}
}

// evaluate reports whether the object is ready.
func (p *Program) evaluate(obj *unstructured.Unstructured) (ready bool, err error) {
	value, err := evaluate(p.program, withoutValues(obj))
	if err != nil {
		return false, err
	}
	ready, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression gives %s, not a bool", value.Type().TypeName())
	}
	return ready, nil
}

// hiddenValue stands for each value of a Secret that is not empty.
const hiddenValue = "***"

// withoutValues returns the content of an object, of a Secret without the values of its data and annotations:
// otherwise an expression that a user can write would tell them, one comparison after the other.
func withoutValues(obj *unstructured.Unstructured) map[string]any {
	if gvk := obj.GroupVersionKind(); gvk.Group != "" || gvk.Kind != "Secret" {
		return obj.Object
	}
	hidden := obj.DeepCopy().Object
	metadata, _ := hidden["metadata"].(map[string]any)
	for _, values := range []any{hidden["data"], hidden["stringData"], metadata["annotations"]} {
		values, _ := values.(map[string]any)
		for key, value := range values {
			if value != "" {
				values[key] = hiddenValue
			}
		}
	}
	return hidden
}

// maxPrograms bounds the memory of a Compiler. Components have a handful of different expressions,
// so only a mistake reaches the limit.
const maxPrograms = 1000

// Compiler compiles expressions and remembers the results, mistakes included.
// The zero value is ready to use, and so is nil, which remembers nothing. It is
// safe for concurrent use.
type Compiler struct {
	readyWhen compiled[*Program]
	outputs   compiled[*Output]
}

// Compile is CompileReadyWhen; the empty expression gives nil and no error.
func (c *Compiler) Compile(expression string) (*Program, error) {
	if expression == "" {
		return nil, nil
	}
	if c == nil {
		return CompileReadyWhen(expression)
	}
	return c.readyWhen.get(expression, CompileReadyWhen)
}

// CompileOutput is the function CompileOutput.
func (c *Compiler) CompileOutput(expression string) (*Output, error) {
	if c == nil {
		return CompileOutput(expression)
	}
	return c.outputs.get(expression, CompileOutput)
}

// compiled are the results of compiling expressions.
type compiled[P any] struct {
	mutex    sync.Mutex
	programs map[string]func() (P, error)
}

func (c *compiled[P]) get(expression string, compile func(string) (P, error)) (P, error) {
	c.mutex.Lock()
	known, found := c.programs[expression]
	if !found {
		if c.programs == nil || len(c.programs) >= maxPrograms {
			c.programs = map[string]func() (P, error){}
		}
		known = sync.OnceValues(func() (P, error) { return compile(expression) })
		c.programs[expression] = known
	}
	c.mutex.Unlock()
	return known()
}
