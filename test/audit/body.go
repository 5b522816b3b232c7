// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// body is the part of an object in the log that we use.
type body struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace, UID, ResourceVersion string
		DeletionTimestamp                     string
		Finalizers                            []string
		Labels, Annotations                   map[string]string
	}
	Type   string
	Status struct {
		Inventory  v1alpha1.Inventory
		Revision   int64
		History    []v1alpha1.RevisionStatus
		Conditions []metav1.Condition
	}
}

// key names an object without its version.
type key struct{ group, kind, namespace, name string }

func (k key) String() string {
	return strings.Trim(k.kind+"."+k.group, ".") + " " + strings.Trim(k.namespace+"/"+k.name, "/")
}

func (b body) key() key {
	gv, _ := schema.ParseGroupVersion(b.APIVersion)
	return key{gv.Group, b.Kind, b.Metadata.Namespace, b.Metadata.Name}
}

// isObject reports whether the body is an object, not the answer that there is none any more.
func (b body) isObject() bool { return b.Kind != "" && b.Kind != "Status" && b.Metadata.UID != "" }

// parse reads a body; a body that is missing or of another form is empty.
func parse(raw json.RawMessage) body {
	var b body
	if err := json.Unmarshal(raw, &b); err != nil {
		// Status of a type may have any form; the metadata has not.
		var metadata struct {
			APIVersion, Kind string
			Metadata         json.RawMessage
		}
		_ = json.Unmarshal(raw, &metadata)
		b = body{APIVersion: metadata.APIVersion, Kind: metadata.Kind}
		_ = json.Unmarshal(metadata.Metadata, &b.Metadata)
	}
	return b
}

// ownership is what labels and annotations say about the owner of an object.
type ownership struct {
	id     string // our label
	owner  string // the owner in clear text, without its uid
	uid    string // of that owner
	others []string
	// shared is the annotation of a definition that all components share; empty unless it has the label of these, too.
	shared string
	// ours: it is a Secret of the operator's own, of a request for a preview, of revisions, or of outputs.
	ours bool
}

// helmRelease is the annotation by which Helm shows that an object is its own, and fluxRelease the label that Flux gives to
// the objects of a release, its hooks and its definitions.
const (
	helmRelease = "meta.helm.sh/release-name"
	fluxRelease = "helm.toolkit.fluxcd.io/name"
)

// otherTools are the annotations and labels by which other tools show that an object is theirs.
var otherTools = []string{
	helmRelease, "argocd.argoproj.io/tracking-id", "config.k8s.io/owning-inventory",
	"kustomize.toolkit.fluxcd.io/name", fluxRelease, "kapp.k14s.io/app", "applyset.kubernetes.io/part-of",
}

func ownershipOf(b body, name string) ownership {
	m := ownership{id: b.Metadata.Labels[name+"/owner-id"]}
	m.ours = b.Kind == "Secret" && (b.Metadata.Labels[name+"/preview-of"] != "" || b.Type == name+"/revisions" || b.Type == name+"/outputs")
	if b.Metadata.Labels[name+"/shared"] != "" {
		m.shared = b.Metadata.Annotations[name+"/shared"]
	}
	if text := b.Metadata.Annotations[name+"/owner"]; text != "" {
		cut := strings.LastIndex(text, "/")
		m.owner, m.uid = text[:max(cut, 0)], text[cut+1:]
	}
	for _, values := range []map[string]string{b.Metadata.Labels, b.Metadata.Annotations} {
		for label := range values {
			of, isID := strings.CutSuffix(label, "/owner-id")
			if isID && of != name || slices.Contains(otherTools, label) {
				m.others = append(m.others, label)
			}
		}
	}
	slices.Sort(m.others)
	return m
}

// isRelease reports whether the object names a release, and no owner of another kind.
func (m ownership) isRelease() bool {
	return len(m.others) > 0 && !slices.ContainsFunc(m.others, func(other string) bool { return other != helmRelease && other != fluxRelease })
}

// isEmpty reports whether the object names no owner.
func (m ownership) isEmpty() bool { return m.id == "" && m.owner == "" && len(m.others) == 0 }
