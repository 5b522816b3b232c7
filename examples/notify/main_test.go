// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

const operatorUser = "notify"

// endpoint keeps the messages that it gets, if it is in the mood.
type endpoint struct {
	mu       sync.Mutex
	refuse   []func(http.ResponseWriter) // what the next requests get
	messages []string
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.refuse) > 0 {
		e.refuse[0](w)
		e.refuse = e.refuse[1:]
		return
	}
	var m message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.UID == "" {
		http.Error(w, "no message", http.StatusBadRequest)
		return
	}
	e.messages = append(e.messages, string(m.Action)+" "+m.Name+" "+m.Old["text"]+">"+m.Data["text"])
}

// bed is a cluster in which the operator may do what its role says.
type bed struct {
	*testing.T
	client client.Client
	url    string
}

func newBed(t *testing.T, e *endpoint) *bed {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	c := check.Must(client.New(env.Shared(t).Config(), client.Options{}))(t)
	b := &bed{T: t, client: c, url: server.URL}
	data := check.Must(os.ReadFile("config/rbac.yaml"))(b)
	role := &rbacv1.ClusterRole{}
	check.NoError(b, yaml.UnmarshalStrict(data, role))
	check.NoError(b, c.Create(t.Context(), role))
	check.NoError(b, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	}))
	return b
}

// start starts the operator. The function ends it and waits for its end.
func (b *bed) start() (stop func()) {
	b.Helper()
	config := check.Must(env.Shared(b.T).ConfigFor(operatorUser))(b)
	options := check.Must(managerOptions("default"))(b)
	options.Controller.SkipNameValidation = new(true) // it is started more than once in this process
	manager := check.Must(ctrl.NewManager(config, options))(b)
	check.NoError(b, setup(manager, b.url))
	return env.Run(b, manager)
}

func (b *bed) create(name, text string, labels map[string]string) {
	b.Helper()
	check.NoError(b, b.client.Create(b.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}, Data: map[string]string{"text": text},
	}))
}

func (b *bed) get(name string) *corev1.ConfigMap {
	b.Helper()
	obj := &corev1.ConfigMap{}
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj); !apierrors.IsNotFound(err) {
		check.NoError(b, err)
	}
	return obj
}

func (b *bed) change(name string, change func(*corev1.ConfigMap)) {
	b.Helper()
	obj := b.get(name)
	before := obj.DeepCopy()
	change(obj)
	check.NoError(b, b.client.Patch(b.Context(), obj, client.MergeFrom(before)))
}

// untilFinalizers waits until a ConfigMap has these finalizers; without any it may be gone.
func (b *bed) untilFinalizers(name string, want ...string) {
	b.Helper()
	env.Until(b, name+" has the finalizers", func() error {
		if got := b.get(name).Finalizers; !slices.Equal(got, want) {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// untilGot waits until the endpoint got these messages, in the order of the alphabet.
func (b *bed) untilGot(e *endpoint, want ...string) {
	b.Helper()
	env.Until(b, "the endpoint got the messages", func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.messages) < len(want) {
			return fmt.Errorf("it got %q", e.messages)
		}
		return nil
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	slices.Sort(e.messages)
	slices.Sort(want)
	if diff := cmp.Diff(want, e.messages); diff != "" {
		b.Fatalf("messages (-want +got):\n%s", diff)
	}
	e.messages = nil
}

func TestTheEndpointIsNotifiedOfEveryChangeAlsoAfterARestartAndAnOutage(t *testing.T) {
	e := &endpoint{}
	b := newBed(t, e)
	stop := b.start()
	watched := map[string]string{watchLabel: ""}

	b.create("unwatched", "1", nil)
	b.create("poem", "1", watched)
	b.untilGot(e, "Created poem >1")
	b.untilFinalizers("poem", finalizer)

	e.mu.Lock()
	e.refuse = []func(http.ResponseWriter){
		func(w http.ResponseWriter) { http.Error(w, "broken", http.StatusInternalServerError) },
		func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "busy", http.StatusServiceUnavailable)
		},
	}
	e.mu.Unlock()
	b.change("poem", func(obj *corev1.ConfigMap) { obj.Annotations = map[string]string{"seen": "yes"} })
	b.change("poem", func(obj *corev1.ConfigMap) { obj.Data["text"] = "2" })
	b.untilGot(e, "Updated poem 1>2")

	b.create("letter", "1", watched)
	b.untilGot(e, "Created letter >1")
	b.untilFinalizers("letter", finalizer)
	stop()
	check.NoError(b, b.client.Delete(t.Context(), b.get("poem")))
	b.create("novel", "1", watched)
	b.start()
	b.untilGot(e, "Deleted poem >", "Created novel >1", "Resynced letter >1")
	b.untilFinalizers("poem")

	b.change("letter", func(obj *corev1.ConfigMap) { obj.Labels = nil })
	b.untilGot(e, "Deleted letter >")
	b.untilFinalizers("letter")
	check.NoError(b, b.client.Delete(t.Context(), b.get("novel")))
	b.untilGot(e, "Deleted novel >")
	b.untilFinalizers("novel")
}
