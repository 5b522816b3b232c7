// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// snapshot are the dependents of a component by their names.
type snapshot map[string]dependent

// dependent is an object with the label of the component.
type dependent struct {
	object
	uid types.UID
	// content is the same for every installation: without uids, versions, times, status and values
	// that the server chooses.
	content map[string]any
}

// contents are the contents by which two installations are compared.
func (s snapshot) contents() map[string]map[string]any {
	contents := map[string]map[string]any{}
	for name, d := range s {
		contents[name] = d.content
	}
	return contents
}

// differs returns an error if other dependents are there. Nothing differs from nil.
func (s snapshot) differs(got snapshot) error {
	if s == nil {
		return nil
	}
	if diff := gocmp.Diff(s.contents(), got.contents()); diff != "" {
		return errors.New("the dependents are not those that there are without a failure (-want +got):\n" + diff)
	}
	return nil
}

// dependents returns the objects with the label of the component, of all types that the operator
// has written.
func (i *Installed[T]) dependents(ctx context.Context) (snapshot, error) {
	live, err := i.labelled(ctx)
	if err != nil {
		return nil, err
	}
	words := []string{i.Namespace, "$NAMESPACE", string(i.Component.GetUID()), "$UID"}
	for _, o := range live {
		if o.GetDeletionTimestamp() != nil {
			return nil, fmt.Errorf("%s is still being deleted", i.nameOf(identify(o)))
		}
		words = append(words, string(o.GetUID()), "$UID")
	}
	found := snapshot{}
	for _, o := range live {
		content, err := i.normal(o, strings.NewReplacer(words...))
		if err != nil {
			return nil, err
		}
		id := identify(o)
		found[i.nameOf(id)] = dependent{object: id, uid: o.GetUID(), content: content}
	}
	return found, nil
}

// labelled lists the objects with the label of the component.
func (i *Installed[T]) labelled(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var found []*unstructured.Unstructured
	if i.ownerID == "" {
		return nil, nil
	}
	for _, resource := range i.record.resources() {
		kind, err := i.Client.RESTMapper().KindFor(resource)
		if isUnserved(err) {
			continue // the type is gone
		}
		if err != nil {
			return nil, err
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := i.Client.List(ctx, list); err != nil && !isUnserved(err) {
			return nil, fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for n := range list.Items {
			if i.isLabelled(&list.Items[n]) {
				found = append(found, &list.Items[n])
			}
		}
	}
	return found, nil
}

// isLabelled reports whether an object has the label of the component. The name of the
// reconciler, with which the label starts, is known to the operator only.
func (i *Installed[T]) isLabelled(o client.Object) bool {
	for key, value := range o.GetLabels() {
		if strings.HasSuffix(key, "/"+vocabulary.LabelOwnerID) && value == i.ownerID {
			return true
		}
	}
	return false
}

// isUnserved reports whether the server does not know the type, or not this way of reading it.
func isUnserved(err error) bool {
	return apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// controllerAnnotations are prefixes of annotations that controllers set sooner or later.
var controllerAnnotations = []string{"deployment.kubernetes.io/", "pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/"}

// normal returns the content that is the same for every installation.
func (i *Installed[T]) normal(live *unstructured.Unstructured, words *strings.Replacer) (map[string]any, error) {
	o := live.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "generateName"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	delete(o.Object, "status")
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort", "volumeName"} {
		unstructured.RemoveNestedField(o.Object, "spec", field)
	}
	removeNodePorts(o.Object)
	annotations := o.GetAnnotations()
	for key := range annotations {
		if slices.ContainsFunc(controllerAnnotations, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			delete(annotations, key)
		}
	}
	o.SetAnnotations(annotations)
	if o.GetKind() == "Secret" && o.GroupVersionKind().Group == "" {
		data, _ := o.Object["data"].(map[string]any)
		for key := range data {
			data[key] = "a value that is not compared"
		}
	}
	hideChecksums(o.Object)
	o.Object = hideCertificates(o.Object).(map[string]any)
	if i.operator.Normalize != nil {
		i.operator.Normalize(o)
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	return content, json.Unmarshal([]byte(words.Replace(strings.ReplaceAll(string(text), i.ownerID, "$OWNER"))), &content)
}

// checksum is the form of a digest in hexadecimal.
var checksum = regexp.MustCompile(`^[0-9a-f]{32,128}$`)

// hideChecksums replaces the checksums in annotations, also in annotations of pod templates: they
// may be checksums of Secrets, and the random values of Secrets are not compared. All other sources of
// checksums are compared themselves.
func hideChecksums(content map[string]any) {
	for key, value := range content {
		nested, isMap := value.(map[string]any)
		if !isMap {
			continue
		}
		hideChecksums(nested)
		if key != "annotations" {
			continue
		}
		for name, text := range nested {
			if text, isText := text.(string); isText && checksum.MatchString(text) {
				nested[name] = "a checksum that is not compared"
			}
		}
	}
}

// hideCertificates replaces certificates and keys in PEM, also in base64 as in the field caBundle
// of webhooks: charts generate them, and certificates in Secrets are not compared either.
func hideCertificates(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, nested := range value {
			value[key] = hideCertificates(nested)
		}
	case []any:
		for n, nested := range value {
			value[n] = hideCertificates(nested)
		}
	case string:
		text := value
		if decoded, err := base64.StdEncoding.DecodeString(value); err == nil {
			text = string(decoded)
		}
		if block, _ := pem.Decode([]byte(text)); block != nil {
			return "a certificate or key that is not compared"
		}
	}
	return value
}

// removeNodePorts removes the ports of the nodes from a Service.
func removeNodePorts(content map[string]any) {
	spec, _ := content["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if port, ok := port.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
}

// identify returns the identity of an object.
func identify(o client.Object) object {
	return object{o.GetObjectKind().GroupVersionKind(), o.GetNamespace(), o.GetName()}
}

// bare returns the object without content.
func (o object) bare() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.GroupVersionKind)
	u.SetNamespace(o.namespace)
	u.SetName(o.name)
	return u
}

// nameOf is "Kind name", or "Kind namespace/name" if the namespace is not the component's.
func (i *Installed[T]) nameOf(o object) string {
	name := o.name
	if o.namespace != "" && o.namespace != i.Namespace {
		name = o.namespace + "/" + name
	}
	return o.Kind + " " + strings.ReplaceAll(name, i.Namespace, "$NAMESPACE")
}

// matches reports whether one of the patterns names the object.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// leftovers returns the objects that are left of the component: objects with its label, objects
// that the operator created, and objects in the namespace that were not there before.
func (i *Installed[T]) leftovers(ctx context.Context) ([]object, error) {
	left, err := i.inNamespace(ctx)
	if err != nil {
		return nil, err
	}
	labelled, err := i.labelled(ctx)
	if err != nil {
		return nil, err
	}
	for _, o := range labelled {
		left = append(left, identify(o))
	}
	for o := range i.record.creations() {
		live := o.bare()
		switch err := i.Client.Get(ctx, client.ObjectKeyFromObject(live), live); {
		case err == nil && !isOfOperator(o) && !isShared(live) && !isGarbage(live):
			left = append(left, o)
		case err != nil && !isUnserved(err):
			return nil, err
		}
	}
	left = slices.DeleteFunc(left, func(o object) bool { return i.before[o] || matches(i.operator.Retained, i.nameOf(o)) })
	slices.SortFunc(left, func(a, b object) int { return cmp.Compare(i.nameOf(a), i.nameOf(b)) })
	return slices.Compact(left), nil
}

// isKeyOfDigests reports whether an object is the Secret that the operator keeps for all
// components.
func isKeyOfDigests(o object) bool {
	return o.Kind == "Secret" && strings.HasSuffix(o.name, "-digest-key")
}

// isOfOperator reports whether an object is of the operator itself: the key of its digests and its lease.
func isOfOperator(o object) bool {
	return isKeyOfDigests(o) || o.Kind == "Lease" && o.name == leaseName
}

// isShared reports whether the object is a definition that all components share.
func isShared(o client.Object) bool {
	for label := range o.GetLabels() {
		if strings.HasSuffix(label, "/"+vocabulary.LabelShared) {
			return true
		}
	}
	return false
}

// isGarbage reports whether only the garbage collector of the cluster has to remove the object.
func isGarbage(o client.Object) bool {
	return len(o.GetOwnerReferences()) > 0 && len(o.GetFinalizers()) == 0
}

// inNamespace lists the objects in the namespace of the component, without the component, the
// objects of every namespace, events, and objects that the garbage collector removes.
func (i *Installed[T]) inNamespace(ctx context.Context) ([]object, error) {
	lists, err := i.types.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	var found []object
	for _, served := range lists {
		gv, err := schema.ParseGroupVersion(served.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range served.APIResources {
			kind := gv.WithKind(resource.Kind)
			if !resource.Namespaced || !hasVerbs(resource, "create", "delete", "list") || resource.Name == "events" || kind == i.kind {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind)
			if err := i.Client.List(ctx, list, client.InNamespace(i.Namespace)); err != nil && !isUnserved(err) {
				return nil, fmt.Errorf("list %s: %w", resource.Name, err)
			}
			for n := range list.Items {
				o := object{kind, i.Namespace, list.Items[n].Name}
				if !isGarbage(&list.Items[n]) && !isOfEveryNamespace(o) && !isOfOperator(o) {
					found = append(found, o)
				}
			}
		}
	}
	return found, nil
}

func hasVerbs(resource metav1.APIResource, verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(resource.Verbs, verb) })
}

// isOfEveryNamespace reports whether the object is made with every namespace.
func isOfEveryNamespace(o object) bool {
	return o.GroupKind() == (schema.GroupKind{Kind: "ServiceAccount"}) && o.name == "default" ||
		o.GroupKind() == (schema.GroupKind{Kind: "ConfigMap"}) && o.name == "kube-root-ca.crt"
}
