// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrelease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Records lists the records of a release in objects of some kinds, of Secret and ConfigMap, without their content. The latest revision is the last one.
func Records(ctx context.Context, c client.Reader, namespace, name string, kinds ...string) ([]metav1.PartialObjectMetadata, error) {
	var found []metav1.PartialObjectMetadata
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		if err := c.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm", "name": name}); err != nil {
			return nil, fmt.Errorf("list the records of Helm release %s/%s: %w", namespace, name, err)
		}
		for _, item := range list.Items {
			if strings.HasPrefix(item.Name, "sh.helm.release.v1."+name+".v") {
				item.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
				found = append(found, item)
			}
		}
	}
	slices.SortFunc(found, func(a, b metav1.PartialObjectMetadata) int { return cmp.Compare(RevisionOf(a), RevisionOf(b)) })
	return found, nil
}

// RevisionOf returns the revision that a record says it is about; 0 if it says none.
func RevisionOf(record metav1.PartialObjectMetadata) int64 {
	revision, err := strconv.ParseInt(record.Labels["version"], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// Latest returns the last revision of a release, whatever its status is.
func Latest(ctx context.Context, c client.Reader, namespace, name string, kinds ...string) (Reference, error) {
	records, err := Records(ctx, c, namespace, name, kinds...)
	if err != nil {
		return Reference{}, err
	}
	latest := Reference{Namespace: namespace, Name: name}
	for _, record := range records {
		r := latest
		if r.Revision = RevisionOf(record); r.Revision > latest.Revision && record.Name == r.RecordName() {
			latest = r
		}
	}
	if latest.Revision == 0 {
		return Reference{}, &NotFoundError{Reference: latest}
	}
	return latest, nil
}
