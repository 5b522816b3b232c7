// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// The ...Spec types are ready-made parts of a spec. Embed them inline:
//
//	type ShopSpec struct {
//		component.PlacementSpec `json:",inline"`
//		component.RequeueSpec   `json:",inline"`
//		...
//	}
//
// Their methods can be called on nil, so that they can be embedded as pointers, too.
// Generators have no use for them: Parameters omits them.

// configurationSpecs are the types that Parameters omits. All their fields are
// omitted from JSON if they are empty.
var configurationSpecs = []reflect.Type{
	reflect.TypeFor[PlacementSpec](), reflect.TypeFor[ImpersonationSpec](), reflect.TypeFor[SuspensionSpec](), reflect.TypeFor[ClientSpec](),
	reflect.TypeFor[RequeueSpec](), reflect.TypeFor[RetrySpec](), reflect.TypeFor[TimeoutSpec](), reflect.TypeFor[ReapplySpec](),
	reflect.TypeFor[PolicySpec](), reflect.TypeFor[DriftSpec](), reflect.TypeFor[TypeSpec](), reflect.TypeFor[PatchesSpec](),
	reflect.TypeFor[RollbackSpec](), reflect.TypeFor[RequirementsSpec](),
}

// Parameters returns the spec of a component as the parameters of its generator: what
// json.Marshal makes of it, without the ...Spec types of this package that are embedded
// in it, also those in other embedded structs. Integers are int64. A spec calls it in a
// method ToUnstructured that adds parameters. A spec without the method uses ParametersOf.
//
// What is left out, such as a timeout, can change without a new revision, so that no hook
// of a chart runs for it.
//
// A spec that is no JSON object, or cannot be marshalled, is a mistake in its Go type.
// Parameters panics then, because without its parameters a generator would render its
// defaults. The reconciler makes an error of the component of it, and renders nothing.
func Parameters(spec any) map[string]any {
	text, err := json.Marshal(withoutConfiguration(reflect.ValueOf(spec)))
	if err != nil {
		panic(fmt.Errorf("%T cannot be turned into parameters: %w", spec, err))
	}
	var parameters map[string]any
	if err := utiljson.Unmarshal(text, &parameters); err != nil {
		panic(fmt.Errorf("%T cannot be turned into parameters: %w", spec, err))
	}
	return parameters
}

// ParametersOf makes the spec of a component the parameters of its generator, as Parameters
// converts it. It is meant for the method of a component:
//
//	func (s *Shop) GetSpec() types.Unstructurable { return component.ParametersOf(&s.Spec) }
//
// The spec needs no method then. The ...Configuration interfaces and the references of the
// spec count, and manifests.For passes the spec itself to a function.
func ParametersOf(spec any) types.Unstructurable { return specParameters{spec} }

type specParameters struct{ spec any }

// ToUnstructured converts the spec.
func (p specParameters) ToUnstructured() map[string]any { return Parameters(p.spec) }

// Unwrap returns the spec to renders.SpecOf.
func (p specParameters) Unwrap() any { return p.spec }

// MergedParameters is Parameters for a spec with a field of free-form values, whose JSON name is given:
// the other parameters are put over them, also in nested objects. So a spec can type the values that
// most users set, and leave the rest as they are:
//
//	func (s *ShopSpec) ToUnstructured() map[string]any { return component.MergedParameters(s, "values") }
//
// A field that is not an object is a mistake, like those of Parameters.
func MergedParameters(spec any, field string) map[string]any {
	parameters := Parameters(spec)
	free, present := parameters[field]
	delete(parameters, field)
	if !present || free == nil {
		return parameters
	}
	values, ok := free.(map[string]any)
	if !ok {
		panic(fmt.Errorf("%T cannot be turned into parameters: the field %s must be an object", spec, field))
	}
	mergeInto(values, parameters)
	return values
}

// mergeInto puts the entries of one map over those of another one.
func mergeInto(base, over map[string]any) {
	for key, value := range over {
		nested, isMap := value.(map[string]any)
		below, wasMap := base[key].(map[string]any)
		if isMap && wasMap {
			mergeInto(below, nested)
		} else {
			base[key] = value
		}
	}
}

// withoutConfiguration returns a shallow copy of a struct, or of what the pointer points
// to, in which what is embedded for the reconciler is empty.
func withoutConfiguration(value reflect.Value) any {
	pointed := reflect.Indirect(value)
	switch {
	case !value.IsValid():
		return nil
	case pointed.Kind() != reflect.Struct:
		return value.Interface()
	}
	duplicate := reflect.New(pointed.Type())
	duplicate.Elem().Set(pointed)
	clearConfiguration(duplicate.Elem())
	return duplicate.Interface()
}

func clearConfiguration(value reflect.Value) {
	for i := range value.NumField() {
		field, declared := value.Field(i), value.Type().Field(i)
		kind := declared.Type
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		switch {
		case !declared.Anonymous:
		case slices.Contains(configurationSpecs, kind):
			field.SetZero()
		case field.Kind() == reflect.Struct:
			clearConfiguration(field)
		case field.CanSet() && field.Kind() == reflect.Pointer && field.Elem().Kind() == reflect.Struct:
			field.Set(reflect.ValueOf(withoutConfiguration(field)))
		}
	}
}

// PlacementSpec implements PlacementConfiguration.
//
// +kubebuilder:object:generate=true
type PlacementSpec struct {
	// Namespace is where the dependent objects are put.
	//
	// Default: the namespace of the component
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name is the name that the dependent objects are rendered with.
	//
	// Default: the name of the component
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// GetDeploymentNamespace returns the namespace.
func (s *PlacementSpec) GetDeploymentNamespace() string {
	return ptr.Deref(s, PlacementSpec{}).Namespace
}

// GetDeploymentName returns the name.
func (s *PlacementSpec) GetDeploymentName() string {
	return ptr.Deref(s, PlacementSpec{}).Name
}

// ImpersonationSpec implements ImpersonationConfiguration.
//
// +kubebuilder:object:generate=true
type ImpersonationSpec struct {
	// ServiceAccountName is the service account, in the namespace of the component, that the
	// dependent objects are written by.
	//
	// Default: the user of the kubeconfig or, without one, the option DefaultServiceAccount, else the operator itself
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// GetImpersonationUser returns the user name of the service account without its
// namespace, which the reconciler fills in.
func (s *ImpersonationSpec) GetImpersonationUser() string {
	if s == nil || s.ServiceAccountName == "" {
		return ""
	}
	return targets.ServiceAccountUser("", s.ServiceAccountName)
}

// GetImpersonationGroups returns nothing: the reconciler knows the groups of a service account.
func (s *ImpersonationSpec) GetImpersonationGroups() []string { return nil }

// SuspensionSpec implements SuspensionConfiguration and SuspensionTermsConfiguration.
//
// +kubebuilder:object:generate=true
type SuspensionSpec struct {
	// Suspend stops changes to the dependent objects until it is false again.
	//
	// Default: false
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// SuspendUntil is when a suspension ends by itself.
	//
	// Default: never
	// +optional
	SuspendUntil *metav1.Time `json:"suspendUntil,omitempty"`
	// SuspendReason says why the component is suspended, for other users.
	//
	// Default: none
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SuspendReason string `json:"suspendReason,omitempty"`
}

// IsSuspended returns the value of the field.
func (s *SuspensionSpec) IsSuspended() bool { return s != nil && s.Suspend }

// GetSuspendUntil returns the time, or the zero time if there is none.
func (s *SuspensionSpec) GetSuspendUntil() time.Time {
	return ptr.Deref(ptr.Deref(s, SuspensionSpec{}).SuspendUntil, metav1.Time{}).Time
}

// GetSuspendReason returns the reason.
func (s *SuspensionSpec) GetSuspendReason() string {
	return ptr.Deref(s, SuspensionSpec{}).SuspendReason
}

// ClientSpec implements ClientConfiguration.
//
// +kubebuilder:object:generate=true
type ClientSpec struct {
	// KubeConfig leads to the cluster that the dependent objects are put into.
	//
	// Default: the cluster that the component lives in
	// +optional
	KubeConfig *KubeConfigSpec `json:"kubeConfig,omitempty"`
}

// KubeConfigSpec says where a kubeconfig is.
//
// +kubebuilder:object:generate=true
type KubeConfigSpec struct {
	// SecretRef is a secret in the namespace of the component. Without a key, the keys value, value.yaml and
	// value.yml are tried.
	SecretRef SecretKeyReference `json:"secretRef" fallbackKeys:"value,value.yaml,value.yml" notFoundPolicy:"waitOnDeletion" digest:"ignore"`
}

// GetKubeConfig returns nil if no kubeconfig is referenced. If one is, but is not
// loaded, it returns what is not nil and not usable, so that the component is not
// mistaken for one without a kubeconfig.
func (s *ClientSpec) GetKubeConfig() []byte {
	if s == nil || s.KubeConfig == nil {
		return nil
	}
	if kubeConfig := s.KubeConfig.SecretRef.Value(); kubeConfig != nil {
		return kubeConfig
	}
	return []byte{}
}

// PolicySpec implements PolicyConfiguration.
//
// +kubebuilder:object:generate=true
type PolicySpec struct {
	// AdoptionPolicy says what happens when a dependent object exists already and is not ours.
	//
	// Default: the option AdoptionPolicy, else IfUnowned
	// +optional
	AdoptionPolicy v1alpha1.AdoptionPolicy `json:"adoptionPolicy,omitempty"`
	// UpdatePolicy says how dependent objects are written.
	//
	// Default: the option UpdatePolicy, else Replace
	// +optional
	UpdatePolicy v1alpha1.UpdatePolicy `json:"updatePolicy,omitempty"`
	// DeletePolicy says what happens to dependent objects that are no longer desired.
	//
	// Default: the option DeletePolicy, else Delete
	// +optional
	DeletePolicy v1alpha1.DeletePolicy `json:"deletePolicy,omitempty"`
	// MissingNamespacesPolicy says whether missing namespaces are created.
	//
	// Default: the option MissingNamespacesPolicy, else Create
	// +optional
	MissingNamespacesPolicy v1alpha1.MissingNamespacesPolicy `json:"missingNamespacesPolicy,omitempty"`
}

// GetAdoptionPolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetAdoptionPolicy() reconciler.AdoptionPolicy {
	return ptr.Deref(s, PolicySpec{}).AdoptionPolicy
}

// GetUpdatePolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetUpdatePolicy() reconciler.UpdatePolicy {
	return ptr.Deref(s, PolicySpec{}).UpdatePolicy
}

// GetDeletePolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetDeletePolicy() reconciler.DeletePolicy {
	return ptr.Deref(s, PolicySpec{}).DeletePolicy
}

// GetMissingNamespacesPolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetMissingNamespacesPolicy() reconciler.MissingNamespacesPolicy {
	return ptr.Deref(s, PolicySpec{}).MissingNamespacesPolicy
}

// DriftSpec implements DriftConfiguration.
//
// +kubebuilder:object:generate=true
type DriftSpec struct {
	// DriftPolicy says what happens when another client changes or deletes dependent objects.
	//
	// Default: the option DriftPolicy, else Repair
	// +optional
	DriftPolicy v1alpha1.DriftPolicy `json:"driftPolicy,omitempty"`
}

// GetDriftPolicy returns the policy, or nothing if the default applies.
func (s *DriftSpec) GetDriftPolicy() v1alpha1.DriftPolicy {
	return ptr.Deref(s, DriftSpec{}).DriftPolicy
}

// TypeSpec implements TypeConfiguration.
//
// +kubebuilder:object:generate=true
type TypeSpec struct {
	// AdditionalManagedTypes are types that appear at run time, because of what the dependent objects
	// do. The group may be "*" or "*.suffix", the kind "*".
	//
	// Default: none
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	AdditionalManagedTypes []v1alpha1.TypeInfo `json:"additionalManagedTypes,omitempty"`
}

// GetAdditionalManagedTypes returns the types.
func (s *TypeSpec) GetAdditionalManagedTypes() []reconciler.TypeInfo {
	return ptr.Deref(s, TypeSpec{}).AdditionalManagedTypes
}

// Durations are bounded by the schema in their length and in their numbers, so
// that no accepted value overflows. What was stored before the schema was there
// is a mistake that the component says itself.

// RequeueSpec implements RequeueConfiguration.
//
// +kubebuilder:object:generate=true
type RequeueSpec struct {
	// RequeueInterval is how often the component is reconciled although nothing changed.
	//
	// Default: 10m
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	RequeueInterval *types.Duration `json:"requeueInterval,omitempty"`
}

// GetRequeueInterval returns the interval, or 0 if there is none.
func (s *RequeueSpec) GetRequeueInterval() time.Duration {
	return durationOf(ptr.Deref(s, RequeueSpec{}).RequeueInterval)
}

// RetrySpec implements RetryConfiguration.
//
// +kubebuilder:object:generate=true
type RetrySpec struct {
	// RetryInterval is when the component is reconciled again after it asked for a retry.
	//
	// Default: the requeue interval
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	RetryInterval *types.Duration `json:"retryInterval,omitempty"`
}

// GetRetryInterval returns the interval, or 0 if there is none.
func (s *RetrySpec) GetRetryInterval() time.Duration {
	return durationOf(ptr.Deref(s, RetrySpec{}).RetryInterval)
}

// TimeoutSpec implements TimeoutConfiguration.
//
// +kubebuilder:object:generate=true
type TimeoutSpec struct {
	// Timeout is how long the dependent objects may take to become ready.
	//
	// Default: the requeue interval
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	Timeout *types.Duration `json:"timeout,omitempty"`
}

// GetTimeout returns the timeout, or 0 if there is none.
func (s *TimeoutSpec) GetTimeout() time.Duration {
	return durationOf(ptr.Deref(s, TimeoutSpec{}).Timeout)
}

// ReapplySpec implements ReapplyConfiguration.
//
// +kubebuilder:object:generate=true
type ReapplySpec struct {
	// ReapplyInterval is how often dependent objects are written although nothing changed.
	//
	// Default: never
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]{1,5}(\\.[0-9]{1,9})?(ms|s|m|h))+$"
	// +kubebuilder:validation:MaxLength=32
	ReapplyInterval *types.Duration `json:"reapplyInterval,omitempty"`
}

// GetReapplyInterval returns the interval, or 0 if there is none.
func (s *ReapplySpec) GetReapplyInterval() time.Duration {
	return durationOf(ptr.Deref(s, ReapplySpec{}).ReapplyInterval)
}

// RollbackSpec implements RollbackConfiguration.
//
// +kubebuilder:object:generate=true
type RollbackSpec struct {
	// RollbackOnFailure applies the last revision that was ready if a later one fails or is not ready
	// within the timeout.
	//
	// Default: the option RollbackOnFailure, else false
	// +optional
	RollbackOnFailure *bool `json:"rollbackOnFailure,omitempty"`
}

// GetRollbackOnFailure returns the value, or nil if the default applies.
func (s *RollbackSpec) GetRollbackOnFailure() *bool {
	return ptr.Deref(s, RollbackSpec{}).RollbackOnFailure
}

func durationOf(d *types.Duration) time.Duration {
	return ptr.Deref(d, types.Duration{}).Duration
}

// PatchesSpec implements PatchesConfiguration. It lets the users of an operator
// change what its author did not foresee, as in a kustomization.
//
// +kubebuilder:object:generate=true
type PatchesSpec struct {
	// Patches change the dependent objects after they were rendered, one after the other.
	//
	// Default: none
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Patches []v1alpha1.Patch `json:"patches,omitempty"`
	// Images are replaced wherever containers of dependent objects use them, after the patches.
	//
	// Default: none
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Images []v1alpha1.Image `json:"images,omitempty"`
}

// GetPatches returns the patches.
func (s *PatchesSpec) GetPatches() []v1alpha1.Patch {
	return ptr.Deref(s, PatchesSpec{}).Patches
}

// GetImages returns the images.
func (s *PatchesSpec) GetImages() []v1alpha1.Image {
	return ptr.Deref(s, PatchesSpec{}).Images
}
