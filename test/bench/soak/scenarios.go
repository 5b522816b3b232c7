// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// Servers is the number of API servers of a scenario.
const Servers = 3

// Scenario is a fault of a cluster with several API servers. It repeats until the duration of the run has passed.
type Scenario struct {
	Name string
	// once does the fault once, and undoes it. It ends early with the context.
	once func(ctx context.Context, s *soak) error
}

// Scenarios are all scenarios. Clients other than the operators use the first API server.
func Scenarios() []Scenario {
	return []Scenario{
		{"the member of etcd that leads is cut off from the others", leaderCutOff},
		{"an API server is cut off from etcd", serverCutOff},
		{"the operators move to an API server that is behind, and back", staleServer},
		{"the leader changes between API servers of which one is behind", leadersOnTwoServers},
		{"etcd is restored from a backup", restoreEtcd},
		{"watches have no bookmarks, and end soon", noBookmarks},
		{"watches that go on are answered with 410", expiredWatches},
		{"admission denies deletions", deniedDeletions},
		{"an aggregated API is away", aggregatedAPIAway},
		{"the conversion webhook of the components is away", conversionAway},
	}
}

const short, long = 4 * time.Second, 8 * time.Second

// forAWhile does something, waits, and undoes it.
func forAWhile(ctx context.Context, do, undo func()) {
	do()
	sleep(ctx, long)
	undo()
	sleep(ctx, short)
}

func leaderCutOff(ctx context.Context, s *soak) error {
	leader, err := s.env.EtcdLeader(ctx)
	if err == nil {
		forAWhile(ctx, func() { s.env.Isolate(leader) }, s.env.Heal)
	}
	return ignoreEnd(ctx, err)
}

func serverCutOff(ctx context.Context, s *soak) error {
	n := 2 + s.fate.IntN(Servers-1)
	forAWhile(ctx, func() { s.env.Cut(env.EtcdName(n), env.ServerName(n)) }, s.env.Heal)
	return nil
}

// staleServer lets the third server fall behind, moves the operators there, and lets it catch up.
func staleServer(ctx context.Context, s *soak) error {
	s.aim(2, 2)
	s.env.Isolate(3)
	sleep(ctx, long)
	s.aim(3, 3)
	sleep(ctx, short)
	s.env.Heal()
	sleep(ctx, short)
	return nil
}

// leadersOnTwoServers stops one of two operators for longer than its lease lasts, while the server of the other is behind.
func leadersOnTwoServers(ctx context.Context, s *soak) error {
	s.aim(2, 3)
	s.env.Isolate(3)
	if target := s.operators.pick(s.fate.IntN(2)); target != nil {
		if err := stopFor(ctx, target, long); err != nil {
			return err
		}
	}
	s.env.Heal()
	if target := s.operators.pick(s.fate.IntN(2)); target != nil {
		s.operators.kill(target)
	}
	sleep(ctx, short)
	return nil
}

// restoreEtcd gives etcd the state of some seconds ago.
func restoreEtcd(ctx context.Context, s *soak) error {
	if s.strikes["backup"] == 0 {
		s.strikes["backup"]++
		s.killed = append(s.killed, time.Now())
		if err := s.env.BackUp(context.WithoutCancel(ctx)); err != nil {
			return err
		}
	}
	if !sleep(ctx, 2*long) {
		return nil
	}
	down, err := s.env.RestoreBackup(context.WithoutCancel(ctx))
	s.restored = append(s.restored, down)
	s.strikes["restored"]++
	return err
}

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

func noBookmarks(ctx context.Context, s *soak) error {
	s.alter(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if isWatch(r) {
				r = r.Clone(r.Context())
				query := r.URL.Query()
				query.Del("allowWatchBookmarks")
				query.Set("timeoutSeconds", "3")
				r.URL.RawQuery = query.Encode()
			}
			return next.RoundTrip(r)
		})
	})
	defer s.alter(nil)
	sleep(ctx, long)
	return nil
}

func expiredWatches(ctx context.Context, s *soak) error {
	s.alter(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if version := r.URL.Query().Get("resourceVersion"); isWatch(r) && version != "" && version != "0" {
				return wire.Refuse(r, http.StatusGone, metav1.StatusReasonExpired)
			}
			return next.RoundTrip(r)
		})
	})
	defer s.alter(nil)
	for _, p := range s.proxies {
		p.aim(1) // the watches that run end
	}
	sleep(ctx, long)
	return nil
}

func deniedDeletions(ctx context.Context, s *soak) error {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "deletions-are-denied"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Delete},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps", "namespaces"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "request.userInfo.username != '" + measure.User(report.Corbel) + "'", Message: "deletions are denied"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	return s.with(ctx, policy, binding)
}

func aggregatedAPIAway(ctx context.Context, s *soak) error {
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.away.corbel.run"},
		"spec": map[string]any{
			"group": "away.corbel.run", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "away"},
		},
	}}
	return s.with(ctx, service)
}

// conversionAway lets no component be written: the storage has another version, and the webhook that converts does not answer.
func conversionAway(ctx context.Context, s *soak) error {
	err := s.changeDefinition(ctx, func(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
		if len(spec.Versions) == 1 {
			spec.Versions = append(spec.Versions, *spec.Versions[0].DeepCopy())
			spec.Versions[1].Name = "v2"
		}
		spec.Versions[0].Storage, spec.Versions[1].Storage = false, true
		spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/convert")}, ConversionReviewVersions: []string{"v1"},
		}}
	})
	sleep(ctx, 2*long)
	undone := s.changeDefinition(context.WithoutCancel(ctx), func(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
		for i := range spec.Versions {
			spec.Versions[i].Storage = i == 0
		}
		spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	})
	sleep(ctx, short)
	return errors.Join(ignoreEnd(ctx, err), undone)
}

// changeDefinition changes the definition of the components.
func (s *soak) changeDefinition(ctx context.Context, change func(*apiextensionsv1.CustomResourceDefinitionSpec)) error {
	crd := operator.CRD()
	if err := s.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
		return err
	}
	change(&crd.Spec)
	return s.Update(ctx, crd)
}

// with creates objects, waits, and deletes them. The server may have created an object although the request has failed.
func (s *soak) with(ctx context.Context, objects ...client.Object) error {
	var errs []error
	for _, object := range objects {
		errs = append(errs, ignoreEnd(ctx, s.Create(ctx, object)))
	}
	sleep(ctx, 2*long)
	for _, object := range objects {
		errs = append(errs, client.IgnoreNotFound(s.Delete(context.WithoutCancel(ctx), object)))
	}
	sleep(ctx, short)
	return errors.Join(errs...)
}

// ignoreEnd drops errors after the end of the run, and timeouts of the server.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) {
		return nil
	}
	return err
}

// aim sends the requests of each operator to a server.
func (s *soak) aim(servers ...int) {
	for i, p := range s.proxies {
		p.aim(servers[i])
	}
}

func (s *soak) alter(change func(http.RoundTripper) http.RoundTripper) {
	for _, p := range s.proxies {
		p.alter(change)
	}
}

// trouble replaces the operator by two that elect a leader, and repeats the fault of the scenario until the time has passed.
func (s *soak) trouble(ctx context.Context) error {
	if err := s.sampleAtRest(ctx, "settled", "early"); err != nil {
		return err
	}
	s.outcome.Early, s.started = s.outcome.last(), time.Now()
	s.endOperators()
	var err error
	if s.operators, err = startOperators(ctx, 2, s.nextOrder); err != nil {
		return err
	}
	err = s.disturbWhile(ctx, s.started.Add(s.Duration), func(ctx context.Context) error {
		for ctx.Err() == nil {
			s.strikes["fault"]++
			if err := s.Scenario.once(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
	s.env.Heal()
	s.aim(1, 1)
	if err == nil {
		err = s.restore(ctx)
	}
	if err == nil {
		err = s.waitUntilIdle(ctx) // the processes that have lived through the fault
	}
	s.endOperators()
	if err != nil {
		return err
	}
	return s.measured(ctx)
}
