// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"flag"
	"log"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

// Greeting is the operator's custom resource.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec     `json:"spec,omitempty"`
	Status            component.Status `json:"status,omitempty"`
}

// GreetingList is needed by the manager's watch.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

// GreetingSpec becomes the parameters of the templates.
type GreetingSpec struct {
	Text string `json:"text"`
}

func (g *Greeting) GetSpec() types.Unstructurable { return component.ParametersOf(&g.Spec) }
func (g *Greeting) GetStatus() *component.Status  { return &g.Status }

var templates = fstest.MapFS{"greeting.yaml": {Data: []byte(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
data:
  text: {{ .Values.text | quote }}
`)}} // an operator embeds a folder with go:embed

// An operator: a type, a generator, a reconciler.
func Example() {
	generator, err := gotemplate.New(templates, ".", gotemplate.Options{})
	if err != nil {
		log.Fatal(err)
	}
	leaderElect := flag.Bool("leader-elect", false, "elect one of several replicas; it takes a namespace, as a pod has one")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		LeaderElection: *leaderElect, LeaderElectionID: "greeting.example.com",
		// Otherwise a hook that reads one of them watches all of the cluster.
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}}}},
		Metrics: metricsserver.Options{BindAddress: "0"}, // not served; the default is :8080 on all addresses
	})
	if err != nil {
		log.Fatal(err)
	}
	version := schema.GroupVersion{Group: "example.com", Version: "v1"}
	mgr.GetScheme().AddKnownTypes(version, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(mgr.GetScheme(), version)
	reconciler := component.NewReconciler[*Greeting]("greeting.example.com", generator, component.ReconcilerOptions{})
	if err := reconciler.SetupWithManager(mgr); err != nil {
		log.Fatal(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}

// DeepCopyObject is written by controller-gen, as is that of the list.
func (g *Greeting) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	g.Status.DeepCopyInto(&out.Status)
	return &out
}

func (l *GreetingList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Greeting))
	}
	return &out
}
