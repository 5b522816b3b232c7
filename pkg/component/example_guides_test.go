// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// The code of the guides in docs: each of them says which parts it shows.

// A spec with a field for all values of a chart (howto-helm.md).
type ShopSpec struct {
	component.TimeoutSpec `json:",inline"`
	// Values are those of the chart.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *apiextensionsv1.JSON `json:"values,omitempty"`
}

func (s *ShopSpec) ToUnstructured() map[string]any {
	values, _ := component.Parameters(s)["values"].(map[string]any)
	return values
}

// Options about fields and readiness (howto-drift.md, howto-readiness.md).
var guideOptions = component.ReconcilerOptions{
	Objects: component.ObjectOptions{
		IgnoreFields: []reconciler.IgnoreFields{{
			Type:  reconciler.TypeInfo{Group: "admissionregistration.k8s.io", Kind: "*"},
			Paths: []string{"/webhooks/0/clientConfig/caBundle"},
		}},
		ReadyWhen: []reconciler.ReadyWhen{{
			Type:       reconciler.TypeInfo{Group: "queue.example.com", Kind: "Queue"},
			Expression: "self.?status.?phase.orValue('') == 'Running'",
		}},
	},
}

// Outputs of objects of a chart that stays as it is (howto-outputs.md).
var _ = component.ReconcilerOptions{
	Objects: component.ObjectOptions{
		Outputs: []component.Output{
			{Name: "host", Type: reconciler.TypeInfo{Group: "networking.k8s.io", Kind: "Ingress"}, Object: "*-web", Expression: "self.spec.rules[0].host"},
			{Name: "password", Type: reconciler.TypeInfo{Kind: "Secret"}, Object: "*-admin", Expression: "self.data.password"},
		},
	},
}

// An option for a fleet (howto-upgrading.md).
var _ = component.ReconcilerOptions{
	Revisions: component.RevisionOptions{Rollout: &component.Rollout{
		MaxUnavailable: intstr.FromString("5%"),
		Canaries:       &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "canary"}},
		Pause:          time.Minute,
	}},
}

// A manager that serves the profiles of Go (reference/metrics.md).
var _ = func(config *rest.Config) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, ctrl.Options{PprofBindAddress: "127.0.0.1:8082"})
	return manager, err
}

// A spec with references (howto-references.md).
type MailerSpec struct {
	// Settings is a ConfigMap; all of its keys are used.
	// +optional
	Settings *component.ConfigMapReference `json:"settings,omitempty"`
	// Password is a key of a Secret, by default "password" or "pass".
	Password component.SecretKeyReference `json:"password" fallbackKeys:"password,pass"`
}

func (s *MailerSpec) ToUnstructured() map[string]any {
	parameters := component.Parameters(s)
	parameters["settings"] = s.Settings.Data()
	parameters["password"] = string(s.Password.Value())
	return parameters
}

// A spec for other clusters and users (howto-clusters.md).
type AgentSpec struct {
	component.ClientSpec        `json:",inline"` // kubeConfig
	component.ImpersonationSpec `json:",inline"` // serviceAccountName
	component.PlacementSpec     `json:",inline"` // namespace, name
	LogLevel                    string           `json:"logLevel,omitempty"`
}

// A reconciler for tenants (howto-clusters.md).
func newTenantReconciler(generator manifests.Generator) *component.Reconciler[*Greeting] {
	return component.NewReconciler[*Greeting]("greeting.example.com", generator, component.ReconcilerOptions{
		DefaultServiceAccount: new("deployer"),
		Controller:            component.ControllerOptions{TargetConcurrency: new(4)},
	})
}

// license is a service outside of the cluster.
type license struct {
	client *http.Client
	url    string
}

func (l *license) do(ctx context.Context, method, name string) error {
	request, err := http.NewRequestWithContext(ctx, method, l.url+"/"+name, nil)
	if err != nil {
		return err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusServiceUnavailable {
		return types.NewRetriableError(fmt.Errorf("the license server has too much to do"), new(30*time.Second))
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the license server answers %s", response.Status)
	}
	return nil
}

// Hooks of an operator (howto-hooks.md).
func newLicensedReconciler(generator manifests.Generator, server *license) *component.Reconciler[*Greeting] {
	return component.NewReconciler[*Greeting]("greeting.example.com", generator, component.ReconcilerOptions{}).
		WithPreReconcileHook(func(ctx context.Context, _ client.Client, g *Greeting) error {
			return server.do(ctx, http.MethodPut, g.Name) // the same call may come again
		}).
		WithPostDeleteHook(func(ctx context.Context, _ client.Client, g *Greeting) error {
			return server.do(ctx, http.MethodDelete, g.Name)
		})
}

// The options of an adoption (howto-adopt-helm-release.md).
var adoptionOptions = component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyAlways)}

// The references of a spec are what its generator gets.
func ExampleSecretKeyReference() {
	spec := &MailerSpec{Password: component.SecretKeyReference{Name: "mail", Key: "password"}}
	fmt.Println(spec.ToUnstructured()["password"] == "", spec.Settings.Data() == nil)
	// Output: true true
}

// A spec that requires other components, and a generator that takes a value from them (howto-requirements.md).
type AppSpec struct {
	component.RequirementsSpec `json:",inline"`
	Replicas                   int `json:"replicas,omitempty"`
}

func app(_ context.Context, _, name string, spec *AppSpec) ([]client.Object, error) {
	host := spec.Input("database.host")
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"host": host}}
	return []client.Object{settings}, nil
}

// The code of the guides that no other example calls.
var (
	_                      = manifests.For(app)
	_ types.Unstructurable = (*ShopSpec)(nil)
	_                      = component.ParametersOf(&AgentSpec{})
	_                      = []any{guideOptions, adoptionOptions, newTenantReconciler, newLicensedReconciler}
)

// tracing returns the options of a reconciler that makes spans.
func tracing(exporter sdktrace.SpanExporter) component.ReconcilerOptions {
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sdktrace.TraceIDRatioBased(0.1)))
	return component.ReconcilerOptions{Controller: component.ControllerOptions{TracerProvider: provider}}
}

var _ = tracing

// Mistakes in the wiring are errors of the setup, all at once.
func ExampleReconciler_SetupWithManager() {
	reconciler := component.NewReconciler[*Greeting]("greeting.example.com", nil, component.ReconcilerOptions{Finalizer: new("orphan")})
	fmt.Println(reconciler.SetupWithManager(nil))

	// Output:
	// set up reconciler greeting.example.com: option Finalizer "orphan": belongs to the API server
	// resource generator: the generator is nil
	// the manager is nil
}

// The state comes with the reason and the message of condition Ready.
func ExampleStatus_GetState() {
	var greeting Greeting
	greeting.Status.State = v1alpha1.StateReady

	state, reason, message := greeting.Status.GetState()
	fmt.Printf("%s %q %q %v\n", state, reason, message, greeting.Status.IsReady())

	// Output:
	// Ready "" "" true
}
