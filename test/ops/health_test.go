// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

// recordedStatus is a status that pkg/component/internal/verdict has recorded; the generation is 3.
type recordedStatus struct {
	Reason string         `json:"reason"`
	Status map[string]any `json:"status"`
}

func recordedStatuses(t *testing.T) (statuses []recordedStatus) {
	t.Helper()
	text := check.Must(os.ReadFile(filepath.Join(root, "pkg/component/internal/verdict/testdata/statuses.yaml")))(t)
	check.NoError(t, yaml.Unmarshal(text, &statuses))
	return statuses
}

// state is a component as a tool may find it.
type state struct {
	name   string
	object *unstructured.Unstructured
}

// states are the components with each of the recorded statuses, in the situations that a tool may find them in.
func states(t *testing.T) (all []state) {
	object := func(generation int64, deleting bool, status map[string]any) *unstructured.Unstructured {
		metadata := map[string]any{"name": "main", "namespace": "shop", "generation": generation}
		if deleting {
			metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": shop.Group + "/" + shop.Version, "kind": shop.Kind, "metadata": metadata, "status": status,
		}}
	}
	// The definition of a component has this default.
	never := map[string]any{"observedGeneration": int64(-1)}
	all = append(all, state{"not seen yet", object(1, false, never)}, state{"deleted before it was seen", object(2, true, never)})
	for _, recorded := range recordedStatuses(t) {
		recorded.Status["observedGeneration"] = int64(recorded.Status["observedGeneration"].(float64))
		deleting := strings.HasPrefix(recorded.Status["state"].(string), "Deleti")
		all = append(all,
			state{recorded.Reason, object(3, deleting, recorded.Status)},
			state{recorded.Reason + ", deleted", object(3, true, recorded.Status)},
			state{recorded.Reason + ", changed since", object(4, deleting, recorded.Status)},
			state{recorded.Reason + ", deleted since", object(4, true, recorded.Status)},
		)
		for _, more := range []string{"Drifted", "RolloutStopped"} {
			status := maps.Clone(recorded.Status)
			status["conditions"] = append([]any{map[string]any{"type": more, "status": "True", "reason": more, "message": "as well"}}, status["conditions"].([]any)...)
			all = append(all, state{recorded.Reason + " and " + more, object(3, deleting, status)})
		}
	}
	return all
}

// healthOf runs the health check as Argo CD does. Argo CD itself reports an object that is being deleted as
// Progressing, and does not run the script.
func healthOf(t *testing.T, script []byte, object *unstructured.Unstructured) (health, message string) {
	t.Helper()
	machine := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer machine.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{{lua.LoadLibName, lua.OpenPackage}, {lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}} {
		check.NoError(t, machine.CallByParam(lua.P{Fn: machine.NewFunction(library.open), Protect: true}, lua.LString(library.name)))
	}
	machine.SetGlobal("obj", luaValue(machine, object.Object))
	check.NoError(t, machine.DoString(string(script)))
	result, ok := machine.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script returns %s", machine.Get(-1).Type())
	}
	return result.RawGetString("status").String(), result.RawGetString("message").String()
}

func luaValue(machine *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case nil:
		return lua.LNil
	case string:
		return lua.LString(value)
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
	case float64:
		return lua.LNumber(value)
	case []any:
		table := machine.NewTable()
		for _, element := range value {
			table.Append(luaValue(machine, element))
		}
		return table
	case map[string]any:
		table := machine.NewTable()
		for key, element := range value {
			table.RawSetString(key, luaValue(machine, element))
		}
		return table
	default:
		panic(fmt.Sprintf("a value of type %T", value))
	}
}

// waitEnds reports whether kubectl wait --for=condition=Ready ends. TestKubectlWaitsForReady of
// pkg/component compares kubectl itself with kstatus.
func waitEnds(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		fields := condition.(map[string]any)
		if fields["type"] == "Ready" {
			observed, _ := fields["observedGeneration"].(float64)
			return fields["status"] == "True" && int64(observed) >= object.GetGeneration()
		}
	}
	return false
}

// contract maps the status of kstatus to the health of Argo CD.
var contract = map[status.Status][]string{
	status.CurrentStatus:     {"Healthy"},
	status.FailedStatus:      {"Degraded"},
	status.InProgressStatus:  {"Progressing", "Suspended"},
	status.TerminatingStatus: {"Progressing"},
}

// TestArgoCDFluxAndKubectlAgree runs the three checks on each status that a component may have.
func TestArgoCDFluxAndKubectlAgree(t *testing.T) {
	script := rendered(t, "argocd-health.lua")
	seen := map[string]int{}
	for _, s := range states(t) {
		t.Run(s.name, func(t *testing.T) {
			computed := check.Must(status.Compute(s.object))(t)
			health, message := healthOf(t, script, s.object)
			seen[health]++
			agrees := false
			for _, allowed := range contract[computed.Status] {
				agrees = agrees || allowed == health
			}
			if !agrees {
				t.Errorf("Argo CD says %s, and kstatus %s", health, computed.Status)
			}
			if suspended := strings.HasPrefix(s.name, "Suspended") && computed.Status == status.InProgressStatus && s.object.GetGeneration() == 3; suspended != (health == "Suspended") {
				t.Errorf("Argo CD says %s", health)
			}
			if ends := waitEnds(s.object); ends != (computed.Status == status.CurrentStatus) && !strings.Contains(s.name, ", deleted") {
				t.Errorf("kubectl wait ends: %v; kstatus says %s", ends, computed.Status)
			}
			if message == "" || strings.Contains(message, "nil") {
				t.Errorf("the message is %q", message)
			}
		})
	}
	for _, health := range []string{"Healthy", "Degraded", "Progressing", "Suspended"} {
		if seen[health] == 0 {
			t.Errorf("no status is %s", health)
		}
	}
}

// TestTheGuideShowsTheHealthCheck compares the script with the one in the guide.
func TestTheGuideShowsTheHealthCheck(t *testing.T) {
	guide := check.Must(os.ReadFile(filepath.Join(root, "docs/howto-argocd.md")))(t)
	if !strings.Contains(string(guide), "```lua\n"+string(rendered(t, "argocd-health.lua"))+"```\n") {
		t.Error("docs/howto-argocd.md does not show cmd/corbel/internal/scaffold/templates/ops/argocd-health.lua.tmpl as it is")
	}
}
