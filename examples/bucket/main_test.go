// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/examples/bucket/api/v1alpha1"
	"github.com/corbel-run/corbel/examples/bucket/service"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

const operatorUser = "bucket-operator"

// bed is a cluster with the operator's type and role, and a bucket service.
type bed struct {
	*testing.T
	client  client.Client
	scheme  *runtime.Scheme
	service *service.Service
	url     string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, service: service.New(), scheme: runtime.NewScheme()}
	server := httptest.NewServer(b.service)
	t.Cleanup(server.Close)
	b.url = server.URL
	check.NoError(b, v1alpha1.SchemeBuilder.AddToScheme(b.scheme))
	check.NoError(b, rbacv1.AddToScheme(b.scheme))
	e := env.Shared(t)
	check.Must(envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{"config/crd"}}))(b)
	b.client = check.Must(client.New(e.Config(), client.Options{Scheme: b.scheme}))(b)
	data := check.Must(os.ReadFile("config/rbac.yaml"))(b)
	role := &rbacv1.ClusterRole{}
	check.NoError(b, yaml.UnmarshalStrict(data, role))
	check.NoError(b, b.client.Create(t.Context(), role))
	check.NoError(b, b.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}))
	return b
}

// start starts the operator, with no more rights than its role says. The function ends it
// and waits for its end.
func (b *bed) start() (stop func()) {
	b.Helper()
	cfg := check.Must(env.Shared(b.T).ConfigFor(operatorUser))(b)
	manager, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: b.scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	check.NoError(b, err)
	// A request that hangs is given up soon.
	check.NoError(b, setup(manager, &service.Client{URL: b.url, HTTP: &http.Client{Timeout: time.Second}}))
	return env.Run(b, manager)
}

func (b *bed) create(name string, quota int64) {
	b.Helper()
	check.NoError(b, b.client.Create(b.Context(), &v1alpha1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: v1alpha1.BucketSpec{Quota: quota},
	}))
}

func (b *bed) get(name string) *v1alpha1.Bucket {
	b.Helper()
	obj := &v1alpha1.Bucket{}
	check.NoError(b, b.client.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj))
	return obj
}

func (b *bed) change(name string, change func(*v1alpha1.Bucket)) {
	b.Helper()
	obj := b.get(name)
	before := obj.DeepCopy()
	change(obj)
	check.NoError(b, b.client.Patch(b.Context(), obj, client.MergeFrom(before)))
}

// untilReady waits for a reason of Ready in the current generation.
func (b *bed) untilReady(name, reason string) (obj *v1alpha1.Bucket) {
	b.Helper()
	env.Until(b, name+" is "+reason, func() error {
		obj = b.get(name)
		ready := conditions.Get(obj, "Ready")
		if faults := b.service.Faults(); ready == nil || ready.Reason != reason || ready.ObservedGeneration != obj.Generation || faults > 0 {
			return fmt.Errorf("the condition is %v, and %d faults are left", ready, faults)
		}
		return nil
	})
	conditionstest.Check(b, obj)
	return obj
}

func (b *bed) delete(name string) {
	b.Helper()
	obj := b.get(name)
	check.NoError(b, b.client.Delete(b.Context(), obj))
	env.Until(b, name+" is gone", func() error {
		err := b.client.Get(b.Context(), client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is there"))
	})
}

// want compares what is at the service.
func (b *bed) want(created int, want ...string) {
	b.Helper()
	there, everCreated := b.service.Buckets()
	var got []string
	for _, bucket := range there {
		got = append(got, fmt.Sprintf("%s %d %s", bucket.ID, bucket.Quota, strings.Join(bucket.Objects, ",")))
	}
	if diff := cmp.Diff(want, got); diff != "" || everCreated != created {
		b.Errorf("%d buckets were created, want %d; there are (-want +got):\n%s", everCreated, created, diff)
	}
}

func TestABucketIsCreatedOnceAndNeverLeakedByAServiceThatFailsAndTimesOut(t *testing.T) {
	const refuse, lose, hang = service.FaultRefuse, service.FaultLose, service.FaultHang
	b := newBed(t)
	stop := b.start()

	b.service.Fail(refuse, lose, hang) // the Create twice, then the object of welcome
	b.create("photos", 5)
	b.untilReady("photos", "Ready")
	b.want(1, "b-1 5 welcome.txt")

	b.service.Fail(hang, lose, refuse) // the Create once, then the object of welcome
	b.create("films", 6)
	env.Until(b, "the Create hangs", func() error {
		if faults := b.service.Faults(); faults >= 3 {
			return fmt.Errorf("%d faults are left", faults)
		}
		return nil
	})
	stop() // in the middle of it
	stop = b.start()
	b.untilReady("films", "Ready")
	b.want(2, "b-1 5 welcome.txt", "b-2 6 welcome.txt")

	b.service.Fail(refuse, lose)
	b.change("photos", func(obj *v1alpha1.Bucket) { obj.Spec.Quota = 7 })
	b.untilReady("photos", "Ready")
	b.want(2, "b-1 7 welcome.txt", "b-2 6 welcome.txt")

	b.change("photos", func(obj *v1alpha1.Bucket) { obj.Spec.Quota = 5000 })
	if obj := b.untilReady("photos", "Invalid"); !conditions.IsStalled(obj) {
		t.Errorf("conditions %+v", obj.Status.Conditions)
	}
	b.change("photos", func(obj *v1alpha1.Bucket) { obj.Spec.Quota = 8 })
	b.untilReady("photos", "Ready")

	b.create("huge", 5000)
	b.untilReady("huge", "Invalid")
	b.delete("huge")
	b.want(2, "b-1 8 welcome.txt", "b-2 6 welcome.txt")

	// A deletion waits for a Create that may still take effect: this bucket had one request.
	b.create("music", 3)
	b.untilReady("music", "Ready")
	b.service.Fail(refuse, hang)
	b.delete("music")
	b.change("films", func(obj *v1alpha1.Bucket) {
		obj.Annotations = map[string]string{name + "/management-policy": "detach-on-delete"}
	})
	b.delete("films")
	b.want(3, "b-1 8 welcome.txt", "b-2 6 welcome.txt")
	stop()
}
