// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"testing"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

func TestRequirementsThatAreMistakesAreReportedTogether(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	obj := withSpec(widgetSpec{Size: 3, RequirementsSpec: RequirementsSpec{Requires: []Requirement{
		{APIVersion: "test.corbel.run/v1", Kind: "Widget", Name: "main"},
		{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Namespace: "other", Condition: "self."},
		{APIVersion: "v1", Kind: "ConfigMap", Inputs: map[string]string{"size.x": "x"}},
	}}})
	reconcileOnce(t, h, obj)
	_, reason, message := obj.GetStatus().GetState()
	if reason != vocabulary.ReasonSpecInvalid || len(engine.applied) > 0 {
		t.Errorf("the reason is %s, and the engine is called %d times", reason, len(engine.applied))
	}
	checkMistakes(t, errors.New(message), "Widget shop/main: |spec.requires[0]: a component cannot require itself|spec.requires[1].namespace: |"+
		`spec.requires[1].condition: "self.": |spec.requires[2].name: |spec.requires[2].inputs: size.x is below a parameter that is no object`)
}

func TestRequirementsAreNoParameters(t *testing.T) {
	obj := withSpec(widgetSpec{Size: 3, RequirementsSpec: RequirementsSpec{Requires: []Requirement{{Name: "db", Inputs: map[string]string{"db.host": "host"}}}}})
	without := digestOf(t, obj)
	obj.Spec.Requires[0].loaded = map[string][]byte{"db.host": []byte("one")}
	one := digestOf(t, obj)
	obj.Spec.Requires[0].loaded["db.host"] = []byte("two")
	if two := digestOf(t, obj); one == without || two == one {
		t.Errorf("the revisions are %s, %s and %s", without, one, two)
	}
	if parameters := obj.GetSpec().ToUnstructured(); len(parameters) != 1 {
		t.Errorf("the parameters are %v", parameters)
	}
	if got := obj.Spec.Input("db.host"); got != "two" || obj.Spec.Input("db.port") != "" || (*RequirementsSpec)(nil).Input("a") != "" || (*Requirement)(nil).Input("a") != "" {
		t.Errorf("the input is %q", got)
	}
}

func digestOf(t *testing.T, obj *widget) string {
	t.Helper()
	found, _ := finderFor[*widget]().Find(obj.GetSpec())
	digests, err := digestsOf(obj, found, "", "key")
	check(t, err)
	return digests.Revision
}

func TestMistakesInRequireNamespaces(t *testing.T) {
	for value, want := range map[string]string{"*": "", "shared": "", "a/b": `option RequireNamespaces "a/b": `, "": `option RequireNamespaces "": `} {
		_, err := resolveOptions("test.corbel.run", ReconcilerOptions{Users: UserOptions{RequireNamespaces: []string{value}}})
		if want == "" {
			check(t, err)
		} else {
			checkMistakes(t, err, want)
		}
	}
}
