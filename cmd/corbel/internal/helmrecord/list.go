// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmrecord

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

	"github.com/corbel-run/corbel/internal/helmrelease"
)

// Records lists the records of a release, without their content: in Secrets and in ConfigMaps, the latest revision last.
func Records(ctx context.Context, c client.Reader, namespace, name string) ([]metav1.PartialObjectMetadata, error) {
	var found []metav1.PartialObjectMetadata
	for _, kind := range []string{"Secret", "ConfigMap"} {
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
func Latest(ctx context.Context, c client.Reader, namespace, name string) (helmrelease.Reference, error) {
	records, err := Records(ctx, c, namespace, name)
	if err != nil {
		return helmrelease.Reference{}, err
	}
	latest := helmrelease.Reference{Namespace: namespace, Name: name}
	for _, record := range records {
		r := latest
		if r.Revision = RevisionOf(record); r.Revision > latest.Revision && record.Name == r.RecordName() {
			latest = r
		}
	}
	if latest.Revision == 0 {
		return helmrelease.Reference{}, &helmrelease.NotFoundError{Reference: latest}
	}
	return latest, nil
}
