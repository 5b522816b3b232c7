// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// tree is a component with its dependents.
type tree struct {
	Component componentSummary `json:"component"`
	Unread    string           `json:"unread,omitempty"` // what cannot be read of it
	Stages    []stage          `json:"stages"`
	// SecretOutputs are names.
	Outputs       map[string]string `json:"outputs,omitempty"`
	SecretOutputs []string          `json:"secretOutputs,omitempty"`
}

// stage are the dependents that are applied at a time.
type stage struct {
	Title      string             `json:"title"`
	Dependents []dependentSummary `json:"dependents"`
}

// dependentSummary is a dependent as the tree shows it.
type dependentSummary struct {
	Key        string           `json:"key"` // group/kind/namespace/name
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Namespace  string           `json:"namespace,omitempty"`
	Name       string           `json:"name"`
	UID        types.UID        `json:"uid,omitempty"`
	State      inspect.State    `json:"state"`
	Ready      bool             `json:"ready"`
	Message    string           `json:"message,omitempty"`
	DependsOn  []string         `json:"dependsOn,omitempty"`
	Changes    []inspect.Change `json:"changes,omitempty"`
	Pods       []pod            `json:"pods,omitempty"`
}

// pod is a pod of a workload.
type pod struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
}

// keyOf names a dependent as others do that depend on it.
func keyOf(item v1alpha1.InventoryItem) string {
	return strings.Join([]string{item.Group, item.Kind, item.Namespace, item.Name}, "/")
}

func dependentOf(d inspect.Dependent, pods []*unstructured.Unstructured) dependentSummary {
	out := dependentSummary{
		Key: keyOf(d.Item), APIVersion: strings.TrimPrefix(d.Item.Group+"/"+d.Item.Version, "/"), Kind: d.Item.Kind,
		Namespace: d.Item.Namespace, Name: d.Item.Name, UID: d.Item.UID, State: d.State, Ready: d.IsReady(), Message: d.Message,
		DependsOn: d.Item.DependsOn, Changes: d.Changes, Pods: podsOf(pods),
	}
	if d.Object != nil {
		if out.UID = d.Object.GetUID(); d.State == inspect.StateReady {
			out.Message = inspect.Replicas(d.Object)
		}
	}
	return out
}

func podsOf(list []*unstructured.Unstructured) []pod {
	var pods []pod
	for _, p := range list {
		state, message := inspect.PodState(p)
		pods = append(pods, pod{p.GetName(), state, message})
	}
	return pods
}

// view is what was read of a component.
type view struct {
	component  inspect.Component
	dependents []inspect.Dependent
	pods       map[types.UID][]*unstructured.Unstructured
	unread     error // what cannot be read of the inventory, else of the pods
}

// read reads a component with its dependents and their pods.
func (s *Server) read(ctx context.Context, a address) (reader *inspect.Reader, v view, err error) {
	if reader, v.component, err = s.component(ctx, a); err != nil {
		return nil, v, err
	}
	dependents, lost := reader.Dependents(ctx, v.component)
	if lost != nil && !inspect.IsLost(lost) && v.component.Mistake == nil {
		return nil, v, lost
	}
	v.dependents = dependents
	v.pods, err = reader.Pods(ctx, dependents)
	v.unread = cmp.Or(lost, err)
	return reader, v, nil
}

func (v view) podsOf(d inspect.Dependent) []*unstructured.Unstructured {
	if d.Object == nil {
		return nil
	}
	return v.pods[d.Object.GetUID()]
}

func (v view) tree() tree {
	out := tree{Component: componentOf(v.component), Stages: []stage{}, Outputs: v.component.Status.Outputs, SecretOutputs: v.component.Status.SecretOutputs}
	if v.unread != nil {
		out.Unread = v.unread.Error()
	}
	for i, d := range v.dependents {
		if i == 0 || d.Stage != v.dependents[i-1].Stage {
			out.Stages = append(out.Stages, stage{Title: d.Stage.Title})
		}
		last := &out.Stages[len(out.Stages)-1]
		last.Dependents = append(last.Dependents, dependentOf(d, v.podsOf(d)))
	}
	return out
}
