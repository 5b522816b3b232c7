// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// webhooksAge is how long the list of mutating webhooks is used.
//
// Limit: the time for which a list of the mutating webhooks is used.
const webhooksAge = time.Minute

// mutators are the mutating webhooks of the target, as they were listed last.
type mutators struct {
	lock     sync.Mutex
	at       time.Time
	webhooks []admissionv1.MutatingWebhook
	err      error
}

// altered names the mutating webhooks of the type if the object that was just written differs from
// its manifest, and then the paths: "webhook a.example.com: data.value". It is empty if no webhook
// is called for the type: then the server has only written a value in another way. If webhooks
// cannot be listed, it reports that it may be one.
func (e *Executor) altered(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured) string {
	if e.mutators == nil {
		return ""
	}
	fields := observe.Differences(live, step.Desired)
	if len(fields) == 0 {
		return ""
	}
	left, err := e.leftPaths(ctx, resource, step.Desired.Manifest.Object)
	fields = slices.DeleteFunc(fields, func(field string) bool {
		// The server chooses a value for an empty field, such as spec.clusterIP.
		value, _, _ := unstructured.NestedFieldNoCopy(step.Desired.Manifest.Object, strings.Split(field, ".")...)
		return value == "" || slices.ContainsFunc(left, func(path []string) bool { return strings.HasPrefix(field, strings.Join(path, ".")) })
	})
	if err != nil || len(fields) == 0 {
		return ""
	}
	for i := range fields {
		if confidential.Covers(ctx, step.Key.GroupKind()) {
			fields[i] = confidential.Path(fields[i]) // keys of maps and elements may be values
		}
	}
	webhooks, err := e.mutatingWebhooks(ctx)
	var by []string
	for _, webhook := range webhooks {
		if slices.ContainsFunc(webhook.Rules, func(rule admissionv1.RuleWithOperations) bool {
			group := slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIGroups, resource.GVR.Group)
			return group && slices.ContainsFunc([]string{"*", "*/*", resource.GVR.Resource}, func(name string) bool { return slices.Contains(rule.Resources, name) })
		}) {
			by = append(by, webhook.Name)
		}
	}
	switch {
	case err != nil:
		return "a mutating webhook or the API server: " + strings.Join(fields, ", ")
	case len(by) == 0:
		return ""
	}
	return "webhook " + strings.Join(by[:min(len(by), 3)], " or ") + ": " + strings.Join(fields, ", ")
}

// mutatingWebhooks returns the mutating webhooks of the cluster. They are listed at most once in webhooksAge.
func (e *Executor) mutatingWebhooks(ctx context.Context) ([]admissionv1.MutatingWebhook, error) {
	m := e.mutators
	m.lock.Lock()
	defer m.lock.Unlock()
	if !m.at.IsZero() && time.Since(m.at) < webhooksAge {
		return m.webhooks, m.err
	}
	resource, err := e.types.ResolveAny(ctx, schema.GroupKind{Group: admissionv1.GroupName, Kind: "MutatingWebhookConfiguration"}, "v1")
	list := &unstructured.UnstructuredList{}
	if err == nil {
		list, err = e.objects.List(ctx, resource, "", metav1.ListOptions{})
	}
	if m.webhooks, m.err = nil, err; ctx.Err() == nil {
		m.at = time.Now()
	}
	for i := 0; err == nil && i < len(list.Items); i++ {
		var configuration admissionv1.MutatingWebhookConfiguration
		m.err = runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &configuration)
		m.webhooks = append(m.webhooks, configuration.Webhooks...)
	}
	return m.webhooks, m.err
}
