// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// oneOff are managers behind which there is a person or a script, not a
// controller that would write its fields again. The last one is what the server
// invents for an object whose managers it does not know.
var oneOff = []string{"kubectl", "helm", "oc", "k9s", "before-first-apply"}

// isOneOff tells whether the manager is one of them, or a command of kubectl
// with a name of its own, such as kubectl-edit.
func isOneOff(manager string) bool {
	return slices.Contains(oneOff, manager) || strings.HasPrefix(manager, "kubectl-")
}

// unite merges the entries that count as ours into our entry of server-side
// apply. The result is nil if there are none. Entries for subresources are other
// business: a number of replicas set through "scale" stays where it is. The
// second result tells whether we own more fields than before.
func unite(entries []metav1.ManagedFieldsEntry, owner string, counts func(metav1.ManagedFieldsEntry) bool) (united []metav1.ManagedFieldsEntry, more bool, err error) {
	ours, taken := -1, 0
	for _, entry := range entries {
		isOurs := entry.Manager == owner && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
		switch {
		case isOurs && ours < 0:
			ours = len(united)
		case !isOurs && entry.Subresource == "" && counts(entry):
			taken++
			continue
		}
		united = append(united, entry)
	}
	if taken == 0 || ours < 0 {
		return nil, false, nil
	}
	before, err := fieldsOf(united[ours])
	if err != nil {
		return nil, false, err
	}
	all := before
	for _, entry := range entries {
		if entry.Subresource != "" || !counts(entry) {
			continue
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			return nil, false, err
		}
		all = all.Union(fields)
	}
	raw, err := all.ToJSON()
	if err != nil {
		return nil, false, fmt.Errorf("managed fields of %s: %w", owner, err)
	}
	united[ours].FieldsV1 = metav1.NewFieldsV1(string(raw))
	return united, !all.Equals(before), nil
}

// translate gives the entries of versions that are not served the version of the
// object, and unites those of one manager. An entry whose fields cannot be read is
// dropped. The second result reports whether there were any such entries.
func translate(entries []metav1.ManagedFieldsEntry, to schema.GroupVersion, served map[string]bool) (translated []metav1.ManagedFieldsEntry, changed bool) {
	for _, entry := range entries {
		gv, err := schema.ParseGroupVersion(entry.APIVersion)
		if unserved := err != nil || gv.Group == to.Group && !served[gv.Version]; unserved {
			entry.APIVersion, changed = to.String(), true
		}
		fields, err := fieldsOf(entry)
		if err != nil {
			changed = true
			continue
		}
		same := slices.IndexFunc(translated, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == entry.Manager && other.Operation == entry.Operation &&
				other.Subresource == entry.Subresource && other.APIVersion == entry.APIVersion
		})
		if same < 0 {
			translated = append(translated, entry)
			continue
		}
		known, _ := fieldsOf(translated[same]) // it was read before
		if raw, err := known.Union(fields).ToJSON(); err == nil {
			translated[same].FieldsV1, changed = metav1.NewFieldsV1(string(raw)), true
		}
	}
	return translated, changed
}

func fieldsOf(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	fields := fieldpath.NewSet()
	if entry.FieldsV1 == nil {
		return fields, nil
	}
	if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return nil, fmt.Errorf("managed fields of %s: %w", entry.Manager, err)
	}
	return fields, nil
}
