// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// coreTypes are the Kubernetes types that a field can have. Types with object metadata are not
// among them: the schema of a custom resource would drop the metadata.
var coreTypes = index(
	corev1.ResourceRequirements{}, corev1.ResourceList{}, corev1.Affinity{}, corev1.NodeAffinity{}, corev1.PodAffinity{},
	corev1.PodAntiAffinity{}, corev1.NodeSelector{}, corev1.Toleration{}, corev1.TopologySpreadConstraint{}, corev1.Probe{},
	corev1.SecurityContext{}, corev1.PodSecurityContext{}, corev1.Capabilities{}, corev1.SeccompProfile{}, corev1.SELinuxOptions{},
	corev1.Volume{}, corev1.VolumeMount{}, corev1.EnvVar{}, corev1.EnvVarSource{}, corev1.EnvFromSource{}, corev1.LocalObjectReference{},
	corev1.SecretKeySelector{}, corev1.ConfigMapKeySelector{}, corev1.ObjectReference{}, corev1.TypedLocalObjectReference{},
	corev1.HostAlias{}, corev1.PodDNSConfig{}, corev1.Lifecycle{}, corev1.Container{}, corev1.ContainerPort{}, corev1.ServicePort{},
	corev1.SessionAffinityConfig{}, corev1.Sysctl{}, corev1.PersistentVolumeClaimSpec{},
	appsv1.DeploymentStrategy{}, appsv1.StatefulSetUpdateStrategy{}, appsv1.DaemonSetUpdateStrategy{},
	appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{},
	networkingv1.IngressTLS{}, networkingv1.IngressRule{}, networkingv1.HTTPIngressPath{}, networkingv1.NetworkPolicyPeer{},
	networkingv1.NetworkPolicyIngressRule{}, networkingv1.NetworkPolicyEgressRule{},
	autoscalingv2.HorizontalPodAutoscalerBehavior{}, autoscalingv2.MetricSpec{},
	rbacv1.PolicyRule{}, metav1.LabelSelector{},
)

// coreImports are the packages of the Kubernetes types.
var coreImports = map[string]string{
	"appsv1":        "k8s.io/api/apps/v1",
	"autoscalingv2": "k8s.io/api/autoscaling/v2",
	"corev1":        "k8s.io/api/core/v1",
	"networkingv1":  "k8s.io/api/networking/v1",
	"rbacv1":        "k8s.io/api/rbac/v1",
	"metav1":        "k8s.io/apimachinery/pkg/apis/meta/v1",
}

func index(values ...any) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, value := range values {
		t := reflect.TypeOf(value)
		for alias, path := range coreImports {
			if path == t.PkgPath() {
				types[alias+"."+t.Name()] = t
			}
		}
	}
	return types
}

func isCore(name string) bool { return coreTypes[name] != nil }

// reference matches the names of Kubernetes types in the OpenAPI definitions of Kubernetes.
var reference = regexp.MustCompile(`(?:^|[/#.])io\.k8s\.(?:api\.([a-z]+)|apimachinery\.pkg\.(?:apis\.(meta)|util\.intstr|api\.resource))\.(?:(v\d\w*)\.)?(\w+)$`)

// coreByReference returns the Kubernetes type that a reference of a schema names, wherever it leads.
func coreByReference(ref string) (string, bool) {
	match := reference.FindStringSubmatch(ref)
	if match == nil {
		return "", false
	}
	if match[4] == "IntOrString" || match[4] == "Quantity" {
		return string(IntOrString), true
	}
	core := match[1] + match[2] + match[3] + "." + match[4]
	return core, isCore(core)
}

// shape is a type that a name stands for.
type shape struct {
	kind Type
	core string
	elem *shape
}

func core(name string) shape  { return shape{kind: Core, core: name} }
func listOf(elem shape) shape { return shape{kind: List, elem: &elem} }
func mapOf(elem shape) shape  { return shape{kind: Map, elem: &elem} }

var (
	texts      = listOf(shape{kind: String})
	pairs      = mapOf(shape{kind: String})
	containers = listOf(core("corev1.Container"))
	strategies = []shape{
		core("appsv1.DeploymentStrategy"), core("appsv1.StatefulSetUpdateStrategy"), core("appsv1.DaemonSetUpdateStrategy"),
	}
)

// wellKnown are the names, in lower case, that stand for the same in most charts. The first shape
// that the value fits counts.
var wellKnown = map[string][]shape{
	"resources":                 {core("corev1.ResourceRequirements")},
	"affinity":                  {core("corev1.Affinity")},
	"nodeaffinity":              {core("corev1.NodeAffinity")},
	"podaffinity":               {core("corev1.PodAffinity")},
	"podantiaffinity":           {core("corev1.PodAntiAffinity")},
	"tolerations":               {listOf(core("corev1.Toleration"))},
	"nodeselector":              {pairs},
	"topologyspreadconstraints": {listOf(core("corev1.TopologySpreadConstraint"))},
	"livenessprobe":             {core("corev1.Probe")},
	"readinessprobe":            {core("corev1.Probe")},
	"startupprobe":              {core("corev1.Probe")},
	"customlivenessprobe":       {core("corev1.Probe")},
	"customreadinessprobe":      {core("corev1.Probe")},
	"customstartupprobe":        {core("corev1.Probe")},
	"podsecuritycontext":        {core("corev1.PodSecurityContext")},
	"containersecuritycontext":  {core("corev1.SecurityContext")},
	"volumes":                   {listOf(core("corev1.Volume"))},
	"volumemounts":              {listOf(core("corev1.VolumeMount"))},
	"env":                       {listOf(core("corev1.EnvVar")), pairs},
	"envvars":                   {listOf(core("corev1.EnvVar")), pairs},
	"envfrom":                   {listOf(core("corev1.EnvFromSource"))},
	"envvarsfrom":               {listOf(core("corev1.EnvFromSource"))},
	"imagepullsecrets":          {listOf(core("corev1.LocalObjectReference")), texts},
	// Below an image, the usual elements are names.
	"pullsecrets":                          {texts, listOf(core("corev1.LocalObjectReference"))},
	"hostaliases":                          {listOf(core("corev1.HostAlias"))},
	"dnsconfig":                            {core("corev1.PodDNSConfig")},
	"lifecycle":                            {core("corev1.Lifecycle")},
	"lifecyclehooks":                       {core("corev1.Lifecycle")},
	"initcontainers":                       {containers},
	"sidecars":                             {containers},
	"sidecarcontainers":                    {containers},
	"containers":                           {containers},
	"containerports":                       {listOf(core("corev1.ContainerPort"))},
	"strategy":                             strategies,
	"updatestrategy":                       strategies,
	"deploymentstrategy":                   strategies[:1],
	"sessionaffinityconfig":                {core("corev1.SessionAffinityConfig")},
	"sysctls":                              {listOf(core("corev1.Sysctl"))},
	"maxunavailable":                       {{kind: IntOrString}},
	"minavailable":                         {{kind: IntOrString}},
	"maxsurge":                             {{kind: IntOrString}},
	"targetport":                           {{kind: IntOrString}},
	"args":                                 {texts},
	"command":                              {texts},
	"flags":                                {texts},
	"accessmodes":                          {texts},
	"externalips":                          {texts},
	"loadbalancerips":                      {texts},
	"hostnames":                            {texts},
	"namespaces":                           {texts},
	"watchnamespaces":                      {texts},
	"apiversions":                          {texts},
	"targetlabels":                         {texts},
	"podtargetlabels":                      {texts},
	"ipfamilies":                           {texts},
	"loadbalancersourceranges":             {texts},
	"persistentvolumeclaimretentionpolicy": {core("appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy")},
}

// wellKnownBelow are names that stand for a type below certain keys only, which contain a word.
var wellKnownBelow = []struct {
	above string
	names map[string]shape
}{
	{"ingress", map[string]shape{
		"tls": listOf(core("networkingv1.IngressTLS")), "extratls": listOf(core("networkingv1.IngressTLS")),
		"extrarules": listOf(core("networkingv1.IngressRule")), "extrapaths": listOf(core("networkingv1.HTTPIngressPath")),
	}},
	{"networkpolicy", map[string]shape{
		"extraingress": listOf(core("networkingv1.NetworkPolicyIngressRule")), "extraegress": listOf(core("networkingv1.NetworkPolicyEgressRule")),
	}},
	{"resources", map[string]shape{"limits": core("corev1.ResourceList"), "requests": core("corev1.ResourceList")}},
	{"service", map[string]shape{"ports": listOf(core("corev1.ServicePort")), "extraports": listOf(core("corev1.ServicePort"))}},
	{"affinitypreset", map[string]shape{"values": texts}},
	{"rbac", map[string]shape{"rules": listOf(core("rbacv1.PolicyRule")), "extrarules": listOf(core("rbacv1.PolicyRule"))}},
	{"autoscaling", map[string]shape{"behavior": core("autoscalingv2.HorizontalPodAutoscalerBehavior")}},
	{"hpa", map[string]shape{"behavior": core("autoscalingv2.HorizontalPodAutoscalerBehavior")}},
	{"persistence", map[string]shape{"selector": core("metav1.LabelSelector")}},
}

// byName returns the type that the name of a value stands for, if the value fits.
func byName(p place) (shape, bool) {
	if p.key == "" {
		return shape{}, false
	}
	for _, candidate := range candidates(p) {
		// Whatever an empty value is: a number of pods is no object.
		if fits(candidate, p.value) || candidate.kind == IntOrString && isEmpty(p.value) {
			return candidate, true
		}
		// Many charts put a switch beside the fields of the type.
		if rest, ok := withoutSwitch(p.value); ok && candidate.kind == Core && fits(candidate, rest) {
			candidate.kind = Object
			return candidate, true
		}
	}
	return shape{}, false
}

// shape fills a field with the type of a name.
func (l *learner) shape(field *Field, p place, s shape) {
	field.Type, field.Core, field.Origin = s.kind, s.core, FromName
	switch s.kind {
	case List, Map:
		field.Elem = &Field{Type: s.elem.kind, Core: s.elem.core, Origin: FromName}
	case Object:
		own := p
		own.value = map[string]any{switchKey: p.value.(map[string]any)[switchKey]}
		field.Fields = l.children(own, reading{}, reading{})
	}
}

const switchKey = "enabled"

// withoutSwitch returns an object without the key "enabled".
func withoutSwitch(value any) (any, bool) {
	object, ok := value.(map[string]any)
	if _, isBool := object[switchKey].(bool); !ok || !isBool {
		return nil, false
	}
	rest := maps.Clone(object)
	delete(rest, switchKey)
	return rest, true
}

// candidates returns the types that a name may stand for, the most likely one first.
func candidates(p place) []shape {
	name := strings.ToLower(p.key)
	if shapes := below(p, name); shapes != nil {
		return shapes
	}
	if name == "securitycontext" {
		return securityContexts(p)
	}
	if shapes, ok := wellKnown[name]; ok {
		return shapes
	}
	for _, prefix := range []string{"extra", "additional", "pod", "common", "global", "default"} {
		if shapes, ok := wellKnown[strings.TrimPrefix(name, prefix)]; ok && strings.HasPrefix(name, prefix) {
			// Extra resources are objects to create.
			if name == prefix+"resources" && isEmpty(p.value) {
				return nil
			}
			return shapes
		}
	}
	switch last := lastWord(p.key); {
	case last == "annotations" || last == "labels":
		return []shape{pairs}
	case isEmpty(p.value):
		return scalars(p, name, last)
	default:
		// A longer name stands for the same if the value shows it.
		for _, suffix := range []string{"resources", "tolerations", "nodeselector", "affinity", "securitycontext", "podsecuritycontext"} {
			if strings.HasSuffix(name, suffix) {
				if suffix == "securitycontext" {
					return []shape{core("corev1.SecurityContext"), core("corev1.PodSecurityContext")}
				}
				return wellKnown[suffix]
			}
		}
		return nil
	}
}

// below returns the type that a name stands for because of the keys above it.
func below(p place, name string) []shape {
	for _, known := range wellKnownBelow {
		found, ok := known.names[name]
		if ok && slices.ContainsFunc(p.parents, func(parent string) bool { return strings.Contains(strings.ToLower(parent), known.above) }) {
			return []shape{found}
		}
	}
	return nil
}

// securityContexts decides between that of a pod and that of a container: by the name of the
// sibling, or by the fields that the value has. An empty value without a sibling may be either.
func securityContexts(p place) []shape {
	container, pod := core("corev1.SecurityContext"), core("corev1.PodSecurityContext")
	_, besidePod := p.siblings["podSecurityContext"]
	_, besideContainer := p.siblings["containerSecurityContext"]
	switch {
	case besidePod:
		return []shape{container, pod}
	case besideContainer:
		return []shape{pod, container}
	case isEmpty(p.value):
		return nil
	default:
		return []shape{container, pod}
	}
}

// scalars returns the type of a scalar that is not set. Where an integer is expected, "" is a usual
// default, which the type has to accept.
func scalars(p place, name, last string) []shape {
	switch {
	case p.value != nil && p.value != "":
		return nil
	case isWhole(p) && (p.value == "" || last == "port"):
		return []shape{{kind: IntOrString}}
	case isWhole(p):
		return []shape{{kind: Integer}}
	case p.value != nil:
		return nil
	case last == "enabled" || slices.Contains(booleans, name):
		return []shape{{kind: Bool}}
	case slices.Contains(stringWords, last), last != name && slices.Contains(stringLastWords, last):
		return []shape{{kind: String}}
	}
	return nil
}

var (
	booleans    = []string{"create", "debug", "automountserviceaccounttoken", "hostnetwork", "hostpid", "hostipc", "readonly", "allowprivilegeescalation"}
	stringWords = []string{
		"name", "class", "hostname", "host", "tag", "registry", "repository", "digest", "override", "namespace", "password",
		"username", "url", "version", "size", "ip", "domain", "schedule", "timezone",
	}
	// stringLastWords are strings if another word precedes them.
	stringLastWords = []string{"secret", "claim", "policy", "key", "image", "path", "type", "mode"}
	wholeWords      = []string{"port", "replicas", "seconds", "percentage", "threshold", "count"}
	wholeNames      = []string{"revisionhistorylimit", "historylimit", "backofflimit", "parallelism", "completions", "targetcpu", "targetmemory"}
	wholeParents    = []string{"ports", "containerports", "nodeports"}
)

// isWhole reports whether a value is an integer by its name.
func isWhole(p place) bool {
	if len(p.parents) > 0 && slices.Contains(wholeParents, strings.ToLower(p.parents[len(p.parents)-1])) {
		return true
	}
	return slices.Contains(wholeWords, lastWord(p.key)) || slices.Contains(wholeNames, strings.ToLower(p.key))
}

// lastWord returns the last word of a key in camel case, in lower case.
func lastWord(key string) string {
	words := wordsOf(key)
	if len(words) == 0 {
		return ""
	}
	return strings.ToLower(words[len(words)-1])
}

// fits reports whether a value is one of the shape, strictly: without unknown fields. Null fits.
func fits(s shape, value any) bool {
	switch s.kind {
	case Core:
		return fitsCore(s.core, value)
	case List:
		elements, ok := value.([]any)
		return value == nil || ok && !slices.ContainsFunc(elements, func(v any) bool { return v == nil || !fits(*s.elem, v) })
	case Map:
		object, ok := value.(map[string]any)
		if value != nil && !ok {
			return false
		}
		for _, v := range object {
			if v == nil || !fits(*s.elem, v) {
				return false
			}
		}
		return true
	default:
		return value == nil || agrees(s.kind, value)
	}
}

func fitsCore(name string, value any) bool {
	object, ok := value.(map[string]any)
	if value == nil {
		return true
	}
	if !ok {
		return false
	}
	data, err := json.Marshal(object)
	if err != nil {
		return false
	}
	strict, err := kjson.UnmarshalStrict(data, reflect.New(coreTypes[name]).Interface())
	return err == nil && len(strict) == 0
}

// errMixed keeps elements of different types from fitting a Kubernetes type.
var errMixed = errors.New("elements of different types")

func (mixed) MarshalJSON() ([]byte, error)          { return nil, errMixed }
func (mixedIntString) MarshalJSON() ([]byte, error) { return nil, errMixed }
