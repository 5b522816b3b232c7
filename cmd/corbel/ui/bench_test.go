// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/env"
)

// controlPlane starts one, also with -short, if its programs are there.
func controlPlane(b *testing.B) *env.Environment {
	b.Helper()
	if _, err := env.Assets("kube-apiserver", "etcd", "kube-controller-manager"); err != nil {
		b.Skip(err)
	}
	e, err := env.Start(context.WithoutCancel(b.Context()), env.Options{Cluster: true})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Stop(); err != nil {
			b.Error(err)
		}
	})
	return e
}

// reportTimes reports the median and the slowest.
func reportTimes(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(milliseconds(took[len(took)/2]), "ms/median")
	b.ReportMetric(milliseconds(took[len(took)-1]), "ms/slowest")
	b.ReportMetric(0, "ns/op") // which would be those of the change, too
}

func BenchmarkTheTimeFromAChangeToTheStream(b *testing.B) {
	bed := openBed(b, controlPlane(b))
	bed.createShop("corner")
	p := serve(b, bed.env.Config(), Options{})
	events := p.listen(aboutCorner)
	p.await(events, "tree", "corner-web")
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		text := fmt.Sprintf("change-%d-", i)
		started := time.Now()
		bed.edit(&corev1.Service{}, "corner-api", `{"metadata":{"labels":{"example.com/change":"`+text+`0"}}}`)
		p.await(events, "dependent", text)
		took = append(took, time.Since(started))
		time.Sleep(100 * time.Millisecond) // a change that follows at once waits for the one before
	}
	reportTimes(b, took)
}

func BenchmarkAFleetOf1000IsListed(b *testing.B) {
	const size = 1000
	bed := install(b, controlPlane(b))
	var creating errgroup.Group
	creating.SetLimit(20)
	for i := range size {
		creating.Go(func() error { return bed.createStored(fmt.Sprintf("shop-%04d", i)) })
	}
	bed.check(creating.Wait())
	var took []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		s, err := New(bed.env.Config(), Options{})
		bed.check(err)
		started := time.Now()
		list, err := s.components(new(http.Request).WithContext(b.Context()))
		took = append(took, time.Since(started))
		s.Close()
		if items := list.(componentList).Items; err != nil || len(items) != size {
			b.Fatalf("%d components, %v", len(items), err)
		}
	}
	reportTimes(b, took)
}

func BenchmarkATreeOf1000IsRead(b *testing.B) {
	const size = 1000
	bed := install(b, controlPlane(b))
	s := shop("corner")
	bed.check(bed.client.Create(bed.ctx, s))
	s.Status.State, s.Status.Reconciler, s.Status.OwnerID, s.Status.ObservedGeneration = v1alpha1.StateReady, operatorName, ownerID, s.Generation
	var creating errgroup.Group
	creating.SetLimit(20)
	for i := range size {
		object := dependentNamed("ConfigMap", fmt.Sprintf("corner-%d", i))
		s.Status.Inventory.Items = append(s.Status.Inventory.Items, v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: market, Name: object.GetName(), UID: "x"})
		creating.Go(func() error { return bed.client.Create(bed.ctx, object) })
	}
	bed.check(creating.Wait())
	bed.check(bed.client.Status().Update(bed.ctx, s, client.FieldOwner(operatorName)))
	p := serve(b, bed.env.Config(), Options{})
	var took []time.Duration
	for b.Loop() {
		started := time.Now()
		var shown tree
		p.get("api/tree"+aboutCorner, &shown)
		took = append(took, time.Since(started))
		if len(shown.Stages) != 1 || len(shown.Stages[0].Dependents) != size || !shown.Stages[0].Dependents[0].Ready {
			b.Fatalf("%+v", shown)
		}
	}
	reportTimes(b, took)
}

// createStored creates a Shop with the status that one with 14 dependents has.
func (b *bed) createStored(name string) error {
	s := shop(name)
	if err := b.client.Create(b.ctx, s); err != nil {
		return err
	}
	s.Status.State, s.Status.Reconciler, s.Status.ObservedGeneration, s.Status.Progress, s.Status.Revision = v1alpha1.StateReady, operatorName, s.Generation, "14/14", 1
	s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: "14 of 14 dependent objects are ready", LastTransitionTime: metav1.Now()}}
	for i := range 14 {
		s.Status.Inventory.Items = append(s.Status.Inventory.Items, v1alpha1.InventoryItem{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: market, Name: fmt.Sprintf("%s-%d", name, i), UID: s.UID,
		})
	}
	return b.client.Status().Update(b.ctx, s, client.FieldOwner(operatorName))
}
