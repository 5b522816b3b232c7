// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// asked is the identity of the object that a request is about.
type asked struct {
	resource        Resource
	namespace, name string
	uid             types.UID // empty: not known before
}

func (a asked) String() string {
	return identity(a.resource.GVR.GroupVersion().String(), a.resource.Kind, a.namespace, a.name, a.uid)
}

// unlike is the error of an answer that is about something else.
func (a asked) unlike(answered string) error {
	return protocolError("the server answered with %s instead of %s; find out what answers at its address", answered, a)
}

func identity(apiVersion, kind, namespace, name string, uid types.UID) string {
	text := fmt.Sprintf("%s %q of %s in namespace %q", kind, name, apiVersion, namespace)
	if uid != "" {
		text += fmt.Sprintf(" with uid %q", uid)
	}
	return text
}

// decodeObject decodes an object and makes sure that it is the one that was
// asked for: something else may answer in the place of the server.
func decodeObject(body []byte, a asked) (*unstructured.Unstructured, error) {
	content := map[string]any{}
	if err := utiljson.Unmarshal(body, &content); err != nil {
		return nil, protocolError("the server's answer is not a JSON object of %d bytes", len(body))
	}
	object := &unstructured.Unstructured{Object: content}
	same := object.GetAPIVersion() == a.resource.GVR.GroupVersion().String() && object.GetKind() == a.resource.Kind &&
		object.GetNamespace() == a.namespace && object.GetName() == a.name
	uid := object.GetUID()
	if a.uid == "" {
		uid = ""
	}
	if !same || uid != a.uid {
		return nil, a.unlike(identity(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName(), uid))
	}
	return object, nil
}

// confirms makes sure that a Status of success, where it names an object, names
// the one that was asked for.
func confirms(status metav1.Status, a asked) error {
	details := status.Details
	if details == nil || (details.Name == "" || details.Name == a.name) && (details.UID == "" || a.uid == "" || details.UID == a.uid) {
		return nil
	}
	return a.unlike(fmt.Sprintf("a status of %s %q with uid %q", details.Kind, details.Name, details.UID))
}
