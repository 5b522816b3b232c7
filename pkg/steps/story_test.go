// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// parallel is how many cases of an enumeration go on at a time, unless the flag says
// otherwise: most of their time they wait.
const parallel = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		_ = flag.Set("test.parallel", parallel)
	}
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{}))
}

// story is the life of one bucket on the real API server: it is created and comes to
// rest, then it is deleted and goes.
type story struct {
	*testing.T
	client client.Client
	cloud  *cloud
	key    client.ObjectKey
	// meddled holds what another client changed, which must stay.
	meddled *Bucket
}

var stories atomic.Int64

func newStory(t *testing.T) *story {
	t.Helper()
	e := env.Shared(t)
	installOnce.Do(func() {
		_, installed = envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition()}})
	})
	if installed != nil {
		t.Fatal(installed)
	}
	s := &story{T: t, client: connect(t, nil), cloud: newCloud(), key: client.ObjectKey{Namespace: "default", Name: fmt.Sprintf("b-%d", stories.Add(1))}}
	b := &Bucket{ObjectMeta: metav1.ObjectMeta{Namespace: s.key.Namespace, Name: s.key.Name}}
	if err := s.client.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	installOnce sync.Once
	installed   error
)

// bucket returns the object, or nil if it is gone.
func (s *story) bucket() *Bucket {
	s.Helper()
	b := &Bucket{}
	err := s.client.Get(context.WithoutCancel(s.Context()), s.key, b)
	if client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return b
}

// live lets the operators run all steps, one after the other: the next one starts
// after the crash of the last one.
func (s *story) live(longest time.Duration, operators ...*operator) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	current := 0
	drive := func() {
		s.Helper()
		for {
			if err := operators[current].drive(ctx, longest); err != nil {
				s.Fatal(err)
			}
			if !operators[current].gate.HasCrashed() || current == len(operators)-1 {
				return
			}
			current++
		}
	}
	drive()
	if s.bucket() != nil { // it was not deleted before
		s.checkCompleted()
		if err := s.client.Delete(ctx, s.bucket()); err != nil {
			s.Fatal(err)
		}
		drive()
	}
	if b := s.bucket(); b != nil {
		s.Errorf("the object is still there: %+v", b.Status)
	}
	if len(s.cloud.buckets) != 0 || s.cloud.made != 1 {
		s.Errorf("made %d, left over %v", s.cloud.made, s.cloud.buckets)
	}
}

func (s *story) checkCompleted() {
	s.Helper()
	b := s.bucket()
	if b == nil {
		s.Fatal("the object is gone")
	}
	c := b.Status.Steps.FindType(step)
	if c == nil || c.Status != steps.ConditionCompleted || c.Lock != nil {
		s.Fatalf("the step is %+v", c)
	}
	if m := s.meddled; m != nil {
		theirs := m.Status.Steps.TypeHasStatus("Theirs", "Mine")
		if b.Labels["theirs"] != m.Labels["theirs"] || b.Spec != m.Spec || b.Status.Phase != m.Status.Phase || b.Status.Steps.TypeHasStatus("Theirs", "Mine") != theirs {
			s.Errorf("the change of another client is lost: %+v became %+v", m, b)
		}
	}
	if s.cloud.made != 1 || len(s.cloud.buckets) != 1 || !s.cloud.buckets[b.Status.BucketName] {
		s.Errorf("made %d, there are %v, the status says %q", s.cloud.made, s.cloud.buckets, b.Status.BucketName)
	}
}

// requestsOfALife returns the requests of an operator to which nothing happens.
func requestsOfALife(t *testing.T, commits bool) []string {
	t.Helper()
	s, f := newStory(t), &wire.Gate{}
	o := newOperator(t, s.cloud, f, s.key)
	o.commits = commits
	s.live(0, o)
	for call, count := range s.cloud.calls {
		if count != 1 {
			t.Errorf("%s was called %d times", call, count)
		}
	}
	var methods []string
	for _, request := range f.Requests() {
		method, _, _ := strings.Cut(request, " ")
		methods = append(methods, method)
	}
	return methods
}
