// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/owned"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/status"
)

// ObservationOf reduces an object as the server answered it, to a read or to a write. The
// object is neither changed nor kept. Desired is nil if the object is not desired (any
// more). In rare cases the definition of a custom type is read.
func (o *Observer) ObservationOf(ctx context.Context, live *unstructured.Unstructured, desired *plan.Desired) plan.Observation {
	observation := o.outline(live, desired)
	observation.Status = o.status(ctx, live, desired)
	if desired != nil && desired.Manifest != nil {
		observation.Reclaims = reclaims(live, desired)
		observation.AppliedHash = o.options.Hasher.AppliedHash(withoutScale(live, desired.Manifest), desired.Manifest.Object, desired.Policies.IgnoreFields)
	}
	return observation
}

// reclaims reports whether a write of an object takes over the fields of one-off managers, and there are any.
func reclaims(live *unstructured.Unstructured, desired *plan.Desired) bool {
	if desired.Policies.Update != v1alpha1.UpdatePolicySsaOverride {
		return false
	}
	for entry := range managed(live) {
		if entry.subresource == "" && owned.IsOneOff(entry.manager) {
			return true
		}
	}
	return false
}

// outline returns the observation of an object without its status.
func (o *Observer) outline(live *unstructured.Unstructured, desired *plan.Desired) plan.Observation {
	observation := plan.Observation{
		Existence:          plan.Present,
		UID:                live.GetUID(),
		ResourceVersion:    live.GetResourceVersion(),
		Ownership:          o.ownership(live, desired),
		ObservedHash:       o.options.Hasher.ObservedHash(live.Object),
		Finalizers:         live.GetFinalizers(),
		HasOwnerReferences: len(live.GetOwnerReferences()) > 0,
		Carried:            carriedOf(live),
		Scaled:             scalingOf(live),
		CreationTimestamp:  live.GetCreationTimestamp().Time,
		Finish:             endingOf(live),
		Webhooks:           webhooksOf(live),
		Shared:             o.sharedMark(live),
		Automatic:          live.GetAnnotations()[o.options.Name+"/"+vocabulary.AnnotationAutomatic],
	}
	if deleting := live.GetDeletionTimestamp(); deleting != nil {
		observation.DeletionTimestamp = deleting.Time
	}
	return observation
}

// maxCarried is the greatest size of carried fields that are cached, in bytes.
const maxCarried = 512

// carriedOf returns the fields that a PUT has to carry over, for kinds of which they are small. The
// carried fields of other kinds are read before the PUT.
func carriedOf(live *unstructured.Unstructured) string {
	paths := owned.SmallPaths(live.GroupVersionKind().GroupKind())
	if paths == nil {
		return ""
	}
	carried := map[string]any{}
	for _, path := range paths {
		value, there, err := unstructured.NestedFieldNoCopy(live.Object, path...)
		if err != nil || there && unstructured.SetNestedField(carried, runtime.DeepCopyJSONValue(value), path...) != nil {
			return ""
		}
	}
	encoded, err := json.Marshal(carried)
	if err != nil || len(encoded) > maxCarried {
		return ""
	}
	return string(encoded)
}

// webhooksOf returns the admission webhooks of a configuration that must be called, with their selectors.
func webhooksOf(live *unstructured.Unstructured) map[string]string {
	if !plan.IsWebhookConfiguration(live.GroupVersionKind().GroupKind()) {
		return nil
	}
	found := map[string]string{}
	webhooks, _ := live.Object["webhooks"].([]any)
	for _, element := range webhooks {
		webhook, _ := element.(map[string]any)
		name, _ := webhook["name"].(string)
		if webhook["failurePolicy"] == "Ignore" || name == "" {
			continue
		}
		namespaces, _ := json.Marshal(webhook["namespaceSelector"])
		objects, _ := json.Marshal(webhook["objectSelector"])
		found[name] = fmt.Sprintf("its namespaceSelector is %s, its objectSelector %s", namespaces, objects)
	}
	return found
}

// endingOf returns how far a Job has come that is removed after its end. Its readiness does not
// show that: an expression may decide when it counts as ready.
func endingOf(live *unstructured.Unstructured) plan.Finish {
	if gvk := live.GroupVersionKind(); gvk.Group != "batch" || gvk.Kind != "Job" {
		return plan.FinishUnknown
	}
	if ttl, set, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "ttlSecondsAfterFinished"); !set || ttl == nil {
		return plan.FinishUnknown
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(live.Object, "status", "conditions")
	list, _ := conditions.([]any)
	for _, element := range list {
		condition, _ := element.(map[string]any)
		switch {
		case condition["status"] != "True":
		case condition["type"] == "Complete":
			return plan.FinishComplete
		case condition["type"] == "Failed":
			return plan.FinishFailed
		}
	}
	return plan.Unfinished
}

// observationWithDrift is ObservationOf, and adds how the object came to differ from its record. If
// it is not known of which manifest the object was made, it adds whether it differs from the
// desired one.
func (o *Observer) observationWithDrift(ctx context.Context, live *unstructured.Unstructured, request Request) plan.Observation {
	observation := o.ObservationOf(ctx, live, request.Desired)
	recorded, desired := request.Recorded, request.Desired
	switch {
	case recorded == nil || desired == nil:
	case plan.IsRekeyed(*recorded):
		observation.Differs = len(Differences(live, desired)) > 0
	case recorded.Digest == desired.Digest && recorded.AppliedHash != "" && recorded.AppliedHash != observation.AppliedHash:
		if hash := o.hashOfTyped(ctx, live, desired); hash == recorded.AppliedHash {
			observation.AppliedHash = hash
			break
		}
		observation.EarlierAppliedHash = o.options.Hasher.EarlierAppliedHash(
			recorded.AppliedHash, withoutScale(live, desired.Manifest), desired.Manifest.Object, desired.Policies.IgnoreFields)
		if observation.EarlierAppliedHash != recorded.AppliedHash {
			observation.Drift = DriftOf(live, desired, o.options.FieldOwner)
		}
	}
	return observation
}

// hashOfTyped returns the AppliedHash of a custom resource as if the empty maps were there that a
// typed client drops when it writes the object back; it is empty for other types.
func (o *Observer) hashOfTyped(ctx context.Context, live *unstructured.Unstructured, desired *plan.Desired) string {
	if cluster.IsBuiltIn(desired.Key.Group) {
		return ""
	}
	custom, err := o.types.Custom(ctx, live.GroupVersionKind())
	if err != nil {
		return ""
	}
	manifest := desired.Manifest.Object
	whole, _ := withDropped(withoutScale(live, desired.Manifest), manifest, "", custom.Maps).(map[string]any)
	return o.options.Hasher.AppliedHash(whole, manifest, desired.Policies.IgnoreFields)
}

// withDropped returns a copy of a live value with the empty maps of the manifest that typed clients drop.
func withDropped(live, manifest any, path string, dropped map[string]bool) any {
	switch manifest := manifest.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		if live == nil && len(manifest) == 0 && dropped[path] {
			return manifest
		} else if !ok {
			return live
		}
		fields = maps.Clone(fields)
		for key, value := range manifest {
			if whole := withDropped(fields[key], value, strings.TrimPrefix(path+"."+key, "."), dropped); whole != nil {
				fields[key] = whole
			}
		}
		return fields
	case []any:
		elements, _ := live.([]any)
		elements = slices.Clone(elements)
		for i, element := range elements {
			at := slices.IndexFunc(manifest, func(own any) bool { return nameOf(own) == nameOf(element) })
			if nameOf(element) == "" {
				at = i
			}
			if at >= 0 && at < len(manifest) {
				elements[i] = withDropped(element, manifest[at], path, dropped)
			}
		}
		if elements != nil {
			return elements
		}
	}
	return live
}

func (o *Observer) status(ctx context.Context, live *unstructured.Unstructured, desired *plan.Desired) plan.Status {
	var hints policy.StatusHints
	var expression string
	var outputs []policy.Output
	if desired != nil {
		hints, outputs = desired.Policies.Hints, desired.Policies.Outputs
		expression = o.readyWhen(desired.Policies.ReadyWhen, desired.Key.Group, desired.Key.Kind)
	}
	found := o.analyze(live, hints, expression, outputs)
	if found.Readiness == plan.ReadinessUnknown && !o.declaresConditions(ctx, live.GroupVersionKind()) {
		found.Readiness, found.Message = plan.Ready, ""
	}
	return found
}

// analyze returns the readiness from the object itself. Whether the type declares
// conditions matters only to an object with an empty status; so it is assumed,
// and has to be looked up if it matters.
func (o *Observer) analyze(live *unstructured.Unstructured, hints policy.StatusHints, expression string, outputs []policy.Output) plan.Status {
	program, err := o.options.Compiler.Compile(expression)
	if err != nil {
		return plan.Status{Readiness: plan.NotReady, Message: Sentence("the ready-when expression does not compile: " + err.Error())}
	}
	found := status.Analyze(live, status.Options{
		DeclaresConditions: true,
		Hints:              status.Hints(hints),
		ReadyWhen:          program,
	})
	analyzed := plan.Status{Readiness: readiness[found.Readiness], Message: found.Message}
	o.addOutputs(&analyzed, live, outputs)
	return analyzed
}

// declaresConditions reports whether a controller will presumably write conditions. If it
// cannot be found out, the readiness stays unknown: the worst that follows is a few
// seconds of waiting.
func (o *Observer) declaresConditions(ctx context.Context, gvk schema.GroupVersionKind) bool {
	declares, err := o.types.DeclaresConditions(ctx, gvk)
	return err != nil || declares
}

// readyWhen is the expression for an object: its own, or the one of its type.
func (o *Observer) readyWhen(own, group, kind string) string {
	if own != "" {
		return own
	}
	for _, rule := range o.options.ReadyWhen {
		if rule.Type.Matches(group, kind) {
			return rule.Expression
		}
	}
	return ""
}

var readiness = map[status.Readiness]plan.Readiness{
	status.NotReady:         plan.NotReady,
	status.Ready:            plan.Ready,
	status.Failed:           plan.Failed,
	status.ReadinessUnknown: plan.ReadinessUnknown,
}

// autoscalers are the field managers of autoscalers: the controller of
// HorizontalPodAutoscalers, and KEDA, which scales to and from zero by itself.
var autoscalers = []string{"kube-controller-manager", "keda", "keda-operator"}

// scalingOf returns the number of replicas that was set through the subresource
// scale; nil if none was.
func scalingOf(live *unstructured.Unstructured) *plan.Scaling {
	for entry := range managed(live) {
		if entry.subresource != "scale" {
			continue
		}
		for _, path := range leaves(nil, nil, entry.fields) {
			replicas, _, _ := unstructured.NestedInt64(live.Object, path...)
			return &plan.Scaling{
				Path: strings.Join(path, "."), Replicas: replicas, Manager: strings.Clone(entry.manager), At: entry.at(),
				Autoscaler: slices.Contains(autoscalers, entry.manager),
			}
		}
	}
	return nil
}

// scaledPaths returns the fields that a client has set through the subresource scale, as
// autoscalers do. They belong to that client until another one sets them.
func scaledPaths(live *unstructured.Unstructured) [][]string {
	var paths [][]string
	for entry := range managed(live) {
		if entry.subresource == "scale" {
			paths = leaves(paths, nil, entry.fields)
		}
	}
	return paths
}

func leaves(paths [][]string, at []string, fields map[string]any) [][]string {
	for name, value := range fields {
		key, isField := strings.CutPrefix(name, "f:")
		inner, ok := value.(map[string]any)
		switch {
		case !isField || !ok || at == nil && (key == "metadata" || key == "status"):
		case len(inner) == 0:
			paths = append(paths, append(at[:len(at):len(at)], key))
		default:
			paths = leaves(paths, append(at[:len(at):len(at)], key), inner)
		}
	}
	return paths
}

// withoutScale returns the content of the live object in which the fields that were
// set through the subresource scale are as the manifest has them. The object itself
// is not changed.
func withoutScale(live, manifest *unstructured.Unstructured) map[string]any {
	content := live.Object
	for _, path := range scaledPaths(live) {
		desired, there, err := unstructured.NestedFieldNoCopy(manifest.Object, path...)
		if there && err == nil {
			content = with(content, desired, path)
		}
	}
	return content
}

// with returns a copy with another value at a path; only the maps along the path are
// copied.
func with(content map[string]any, value any, path []string) map[string]any {
	copied := maps.Clone(content)
	if copied == nil {
		copied = map[string]any{}
	}
	if len(path) == 1 {
		copied[path[0]] = value
		return copied
	}
	inner, _ := copied[path[0]].(map[string]any)
	copied[path[0]] = with(inner, value, path[1:])
	return copied
}
