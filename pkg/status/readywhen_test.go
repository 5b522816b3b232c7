// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// when compiles an expression that must be right.
func when(t *testing.T, expression string) Options {
	t.Helper()
	program := check.Must(CompileReadyWhen(expression))(t)
	return Options{ReadyWhen: program, DeclaresConditions: true}
}

func TestReadyWhen(t *testing.T) {
	const cr = `example.com/v1 Foo {metadata: {name: a, generation: 2, labels: {a/b: c}}, `
	phase := when(t, "self.status.phase == 'Running'")
	for _, tt := range []analysis{
		{"the expression is true", cr + `status: {phase: Running}}`, phase, Status{Readiness: Ready}},
		{"the expression is false", cr + `status: {phase: Starting}}`, phase, Status{NotReady, "ready-when is false: self.status.phase == 'Running'"}},
		{"a field does not exist yet", cr + `spec: {}}`, phase, Status{NotReady, "ready-when: no such key: status"}},
		{"a field has another type", cr + `status: {phase: 5}}`, phase, Status{NotReady, "ready-when is false: self.status.phase == 'Running'"}},
		{"the observed generation counts all the same", cr + `status: {observedGeneration: 1, phase: Running}}`, phase, Status{NotReady, "the latest change is not observed yet"}},
		{"deletion counts all the same", `example.com/v1 Foo {metadata: {name: a, deletionTimestamp: x}, status: {phase: Running}}`, phase, Status{NotReady, "is being deleted"}},
		{"the expression replaces the rules of the type", `v1 PersistentVolumeClaim {metadata: {name: a}, status: {phase: Pending}}`, when(t, "self.status.phase in ['Pending', 'Bound']"), Status{Readiness: Ready}},
		{"the type says why it is not ready", `apps/v1 Deployment {metadata: {name: a}, spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, readyReplicas: 1}}`, when(t, "self.status.readyReplicas >= 2"), Status{NotReady, "1 of 3 replicas ready"}},
		{"less than all replicas are enough", `apps/v1 Deployment {metadata: {name: a}, spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, readyReplicas: 2}}`, when(t, "self.status.readyReplicas >= 2"), Status{Readiness: Ready}},
		{"the type says that it failed", `batch/v1 Job {metadata: {name: a}, status: {conditions: [{type: Failed, status: "True", reason: R}]}}`, when(t, "self.status.succeeded > 0"), Status{Failed, "R"}},
		{"hints hold as well", cr + `status: {phase: Running}}`, Options{ReadyWhen: phase.ReadyWhen, Hints: Hints{ReadyCondition: true}}, Status{NotReady, "has no condition Ready yet"}},
		{"macros", cr + `status: {conditions: [{type: A, status: "True"}, {type: B, status: "False"}]}}`, when(t, "self.status.conditions.exists(c, c.type == 'A' && c.status == 'True')"), Status{Readiness: Ready}},
		{"optional values", cr + `spec: {}}`, when(t, "self.?status.?phase.orValue('none') == 'none'"), Status{Readiness: Ready}},
		{"numbers of different types", cr + `status: {share: 0.5, count: 1}}`, when(t, "self.status.share > 0 && self.status.count >= 0.5"), Status{Readiness: Ready}},
		{"keys with slashes", cr + `spec: {}}`, when(t, "self.metadata.labels['a/b'] == 'c'"), Status{Readiness: Ready}},
		{"a value that is no bool", cr + `status: {phase: Running}}`, when(t, "self.status.phase"), Status{NotReady, "ready-when: the expression gives string, not a bool"}},
	} {
		tt.check(t)
	}
}

func TestReadyWhenRefusesWhatCannotWork(t *testing.T) {
	for expression, want := range map[string]string{
		"self.status.":                  "ready-when \"self.status.\": character 13: ",
		"this.status.ready":             "undeclared reference to 'this'",
		"1 + 1":                         "gives int, not a bool",
		"'yes'":                         "gives string, not a bool",
		"nope(self)":                    "undeclared reference to 'nope'",
		"self.name.matches('[')":        "ready-when",
		strings.Repeat("(", 500):        "ready-when",
		strings.Repeat("true && ", 600): "ready-when",
		"":                              "ready-when",
	} {
		program, err := CompileReadyWhen(expression)
		if err == nil || program != nil {
			t.Errorf("%.40q: accepted", expression)
			continue
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %q lacks %q", expression, err, want)
		}
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 600 {
			t.Errorf("%.40q: the message is not one short line: %q", expression, err)
		}
	}
}

func TestReadyWhenIsBounded(t *testing.T) {
	options := when(t, "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c >= 0)))")
	var list []any
	for i := range 1000 {
		list = append(list, int64(i))
	}
	obj := object(t, `example.com/v1 Foo {metadata: {name: a}}`)
	obj.Object["list"] = list
	got := Analyze(obj, options)
	if got.Readiness != NotReady || got.Message != "ready-when: the expression takes too long" {
		t.Errorf("got %v", got)
	}
}

func TestReadyWhenShowsNothingOfSecrets(t *testing.T) {
	obj := object(t, `v1 Secret {metadata: {name: a, labels: {app: a}, annotations: {copy: aHVudGVyMg}}, data: {pin: aHVudGVyMg, none: ""}}`)
	for expression, want := range map[string]bool{
		`self.data.pin.startsWith("aH")`: false, `self.data.pin >= "a"`: false, `size(self.data.pin) == 10`: false,
		`self.metadata.annotations.copy.startsWith("aH")`: false, `int(self.data.pin) > 0`: false,
		`"pin" in self.data && self.data.pin != "" && self.data.none == ""`: true, `self.metadata.labels.app == "a"`: true,
	} {
		got := Analyze(obj, when(t, expression))
		if ready := got.Readiness == Ready; ready != want || strings.Contains(got.Message, "aHVu") {
			t.Errorf("%s: got %v", expression, got)
		}
	}
	check.SameNamed(t, "the object was changed", "aHVudGVyMg", obj.Object["data"].(map[string]any)["pin"])
	other := object(t, `example.com/v1 Secret {metadata: {name: a}, data: {pin: aHVudGVyMg}}`)
	if got := Analyze(other, when(t, `self.data.pin.startsWith("aH")`)); got.Readiness != Ready {
		t.Errorf("an object of another group: %v", got)
	}
}

func TestCompilerIsBoundedAndSafeForConcurrentUse(t *testing.T) {
	var compiler Compiler
	obj := object(t, `example.com/v1 Foo {metadata: {name: a}, size: 5}`)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range maxPrograms / 3 {
				program, err := compiler.Compile(fmt.Sprintf("self.size == %d", worker*maxPrograms+i))
				if err != nil {
					t.Error(err)
					return
				}
				want := worker*maxPrograms+i == 5
				if got := Analyze(obj, Options{ReadyWhen: program}).Readiness == Ready; got != want {
					t.Errorf("%s is %t", program, got)
				}
			}
		})
	}
	group.Wait()
	if n := len(compiler.readyWhen.programs); n > maxPrograms {
		t.Errorf("%d programs are kept", n)
	}
}

func TestCompilerRemembersProgramsAndMistakes(t *testing.T) {
	var compiler Compiler
	first := check.Must(compiler.Compile("self.a == 1"))(t)
	if again, _ := compiler.Compile("self.a == 1"); again != first {
		t.Error("compiled twice")
	}
	_, mistake := compiler.Compile("self.")
	if _, again := compiler.Compile("self."); mistake == nil || again != mistake {
		t.Errorf("got %v, then %v", mistake, again)
	}
	if program, err := compiler.Compile(""); program != nil || err != nil {
		t.Errorf("no expression gives %v, %v", program, err)
	}
	var none *Compiler
	if program, err := none.Compile("true"); err != nil || program.String() != "true" {
		t.Errorf("a nil compiler gives %v, %v", program, err)
	}
	check.SameNamed(t, "no program prints as", "", (*Program)(nil).String())
}
