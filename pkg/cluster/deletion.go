// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// readDeletion reads the answer to a DELETE. The server answers with a Status
// if the object is gone, and with the object if it has to wait for finalizers
// or a grace period. For some kinds (Pod, PersistentVolumeClaim, Service,
// ServiceAccount ...) it answers with the object in either case; then one
// without a deletion timestamp was removed at once, and so was a pod that
// has nothing to wait for.
func readDeletion(answer []byte, a asked) (gone bool, live *unstructured.Unstructured, err error) {
	var status metav1.Status
	if err := utiljson.Unmarshal(answer, &status); err == nil && status.Kind == "Status" && status.APIVersion == "v1" {
		err := confirms(status, a)
		return err == nil && status.Status == metav1.StatusSuccess, nil, err
	}
	object, err := decodeObject(answer, a)
	if err != nil {
		return false, nil, err
	}
	if object.GetDeletionTimestamp() != nil && !isRemovedPod(a.resource, object) {
		return false, object, nil
	}
	// Only the server's own types are known to answer like this. What an
	// aggregated server means by it is not known.
	return IsBuiltIn(a.resource.GVR.Group), nil, nil
}

func isRemovedPod(r Resource, object *unstructured.Unstructured) bool {
	if r.Kind != "Pod" || r.GVR.Group != "" || len(object.GetFinalizers()) > 0 {
		return false
	}
	grace := object.GetDeletionGracePeriodSeconds()
	return grace != nil && *grace == 0
}
