// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// dryRun asks the server whether it would create the object of a step that is to be
// recreated. Nothing is deleted for a successor that the server refuses. The server
// validates the object and asks its admission plugins before it finds out that the name is
// in use, so that AlreadyExists means that it accepts everything else.
func (e *Executor) dryRun(ctx context.Context, step plan.Step) plan.Result {
	resource, err := e.types.Resolve(ctx, step.Key.GroupKind().WithVersion(step.Desired.Version))
	if err != nil {
		return failed(step, err)
	}
	manifest := step.Desired.Manifest
	err = client.IgnoreAlreadyExists(e.objects.Try(ctx, resource, manifest, e.options.FieldOwner))
	if isAlreadyAllocated(err) || err == nil && asksForPort(resource, manifest) {
		live, readErr := e.objects.Get(ctx, resource, step.Key.Namespace, step.Key.Name)
		if readErr != nil {
			return failed(step, fmt.Errorf("read the live object, which may hold what the new one asks for: %w", readErr))
		}
		candidate, held := withoutHeld(resource, manifest, live)
		if held {
			err = client.IgnoreAlreadyExists(e.objects.Try(ctx, resource, candidate, e.options.FieldOwner))
		}
		if err == nil && asksForPort(resource, candidate) {
			err = e.createToCheckPorts(ctx, resource, candidate)
		}
	}
	switch message := strings.ToLower(messageOf(err)); {
	case err == nil:
		return plan.Result{Step: step}
	case apierrors.IsBadRequest(err) && strings.Contains(message, "does not support dry run"):
		return plan.Result{Step: step, Notes: []plan.Note{{
			Key: step.Key, Message: "is recreated although the server could not be asked first whether it accepts the new object: " + messageOf(err),
		}}}
	case apierrors.IsForbidden(err) && strings.Contains(message, "exceeded quota"):
		return failed(step, fmt.Errorf("the live object stays, because the quota counts it and the new object together; raise the quota, or delete the live object: %w", err))
	default:
		return failed(step, fmt.Errorf("the live object stays, because the server refuses the new one: %w", err))
	}
}

// createToCheckPorts creates a Service that asks for a port, under a name that is in use. In
// a dry run the server does not check whether the port is in its range; here it does,
// before it finds out that the name is in use. If the live object has gone meanwhile,
// the new one is the desired object, and its key is on record.
func (e *Executor) createToCheckPorts(ctx context.Context, resource cluster.Resource, object *unstructured.Unstructured) error {
	if err := confirmOwner(ctx); err != nil {
		return err
	}
	_, err := e.objects.Create(ctx, resource, object, e.options.FieldOwner)
	return client.IgnoreAlreadyExists(err)
}

// asksForPort reports whether the object is a Service with a port of nodes of its choice.
func asksForPort(resource cluster.Resource, object *unstructured.Unstructured) bool {
	if !isService(resource) {
		return false
	}
	spec := inner(object.Object, "spec")
	ports, _ := spec["ports"].([]any)
	return spec["healthCheckNodePort"] != nil || slices.ContainsFunc(ports, func(port any) bool {
		fields, _ := port.(map[string]any)
		return fields["nodePort"] != nil
	})
}

func isService(resource cluster.Resource) bool {
	return resource.GVR.Group == "" && resource.Kind == "Service"
}

func messageOf(err error) string {
	if status, answered := errors.AsType[*apierrors.StatusError](err); answered {
		return status.ErrStatus.Message
	}
	return ""
}

// isAlreadyAllocated reports whether the server refused an object because something that
// it asks for exists once and is in use: "provided port is already allocated",
// "is already marked as default".
func isAlreadyAllocated(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)) && strings.Contains(messageOf(err), " already ")
}

// withoutHeld returns the manifest without the values that the live object holds and releases when
// it is deleted. The second result reports whether there are any.
func withoutHeld(resource cluster.Resource, manifest, live *unstructured.Unstructured) (*unstructured.Unstructured, bool) {
	object := manifest.DeepCopy()
	var held bool
	switch gk := resource.GVK().GroupKind(); {
	case isService(resource):
		held = dropHeldFields(inner(object.Object, "spec"), inner(live.Object, "spec"))
	case gk.Group == "scheduling.k8s.io" && gk.Kind == "PriorityClass":
		held = object.Object["globalDefault"] == true && live.Object["globalDefault"] == true
		delete(object.Object, "globalDefault")
	}
	return object, held
}

// dropHeldFields removes the ports of nodes and the addresses that the live Service
// holds from the spec of a Service.
func dropHeldFields(spec, live map[string]any) (held bool) {
	livePorts, _ := live["ports"].([]any)
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		port, _ := port.(map[string]any)
		if port["nodePort"] != nil && slices.ContainsFunc(livePorts, func(other any) bool {
			livePort, _ := other.(map[string]any)
			return sameNumber(port["nodePort"], livePort["nodePort"]) && protocolOf(port) == protocolOf(livePort)
		}) {
			delete(port, "nodePort")
			held = true
		}
	}
	if spec["healthCheckNodePort"] != nil && sameNumber(spec["healthCheckNodePort"], live["healthCheckNodePort"]) {
		delete(spec, "healthCheckNodePort")
		held = true
	}
	if addresses := addressesOf(spec); len(addresses) > 0 && addresses[0] != corev1.ClusterIPNone {
		holds := func(address any) bool { return slices.Contains(addressesOf(live), address) }
		if !slices.ContainsFunc(addresses, func(address any) bool { return !holds(address) }) {
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
			held = true
		}
	}
	return held
}

func addressesOf(spec map[string]any) []any {
	addresses, _ := spec["clusterIPs"].([]any)
	if address, _ := spec["clusterIP"].(string); len(addresses) == 0 && address != "" {
		return []any{address}
	}
	return addresses
}

// sameNumber compares numbers, which YAML and JSON decoders return in several types.
func sameNumber(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

func protocolOf(port map[string]any) string {
	protocol, _ := port["protocol"].(string)
	return cmp.Or(protocol, "TCP")
}
