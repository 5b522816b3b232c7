// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

import (
	"archive/tar"
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/internal/gzipped"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// scanned returns the kinds of a chart as texts.
func scanned(t *testing.T, files map[string]string) (kinds, unknown []string) {
	t.Helper()
	tree := fstest.MapFS{}
	for name, text := range files {
		tree["chart/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	found, unknown, err := ScanChart(tree, "chart")
	check.NoError(t, err)
	return texts(found), unknown
}

func texts(kinds []Kind) (all []string) {
	for _, k := range kinds {
		text := k.Resource
		if k.Group != "" {
			text += "." + k.Group
		}
		for _, sign := range []struct {
			text string
			set  bool
		}{{" optional", k.Optional}, {" cluster", !k.Namespaced}, {" defined", k.Defined}, {" read", k.Read}} {
			if sign.set {
				text += sign.text
			}
		}
		all = append(all, text)
	}
	return all
}

func TestTheKindsOfAChart(t *testing.T) {
	for name, test := range map[string]struct {
		files         map[string]string
		want, unknown []string
	}{
		"both branches of an if, and the documents of a range": {
			files: map[string]string{"templates/all.yaml": `
{{- if .Values.ingress.enabled }}
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a}
{{- else if .Values.gateway -}}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
{{- else }}
apiVersion: v1
kind: Service
{{- end }}
{{- range .Values.extra }}
---
apiVersion: v1
kind: ConfigMap
{{- end }}
`},
			want: []string{"configmaps", "services", "httproutes.gateway.networking.k8s.io optional", "ingresses.networking.k8s.io"},
		},
		"a version that depends on the cluster": {
			files: map[string]string{"templates/pdb.yaml": `
{{- if .Capabilities.APIVersions.Has "policy/v1" }}
apiVersion: policy/v1
{{- else }}
apiVersion: policy/v1beta1
{{- end }}
kind: PodDisruptionBudget
`},
			want: []string{"poddisruptionbudgets.policy"},
		},
		"a version from a helper": {
			files: map[string]string{
				"templates/_helpers.tpl": `{{- define "version" -}}{{- if .x -}}monitoring.coreos.com/v1{{- else -}}azmonitoring.coreos.com/v1{{- end -}}{{- end -}}`,
				"templates/a.yaml":       "apiVersion: {{ include \"version\" . }}\nkind: ServiceMonitor\n",
				"templates/b.yaml":       "apiVersion: {{ include \"common.capabilities.deployment.apiVersion\" . | quote }}\nkind: Deployment\n",
			},
			want: []string{"deployments.apps", "servicemonitors.azmonitoring.coreos.com optional", "servicemonitors.monitoring.coreos.com optional"},
		},
		"kinds that are chosen": {
			files: map[string]string{"templates/a.yaml": `apiVersion: apps/v1
kind: {{ if .Values.daemon }}DaemonSet{{ else }}Deployment{{ end }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ ternary "Role" "ClusterRole" .Values.namespaced }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if .Values.cluster }}Cluster{{ end }}RoleBinding
---
apiVersion: apps/v1
kind: {{ .Values.kind | default "StatefulSet" }}
---
apiVersion: {{ .Values.apiVersion }}
kind: {{ .Values.object }}
`},
			want: []string{
				"daemonsets.apps", "deployments.apps", "statefulsets.apps", "clusterrolebindings.rbac.authorization.k8s.io cluster",
				"clusterroles.rbac.authorization.k8s.io cluster", "rolebindings.rbac.authorization.k8s.io", "roles.rbac.authorization.k8s.io",
			},
			unknown: []string{
				`templates/a.yaml: kind: {{ .Values.kind | default "StatefulSet" }}`, "templates/a.yaml: kind: {{ .Values.object }}",
			},
		},
		"what is looked up": {
			files: map[string]string{
				"templates/_helpers.tpl": `{{- define "a" }}{{ (lookup "v1" "Secret" .Release.Namespace "a").data }}{{ lookup "v1" "Node" "" "" }}{{ end -}}`,
				"templates/a.yaml":       "apiVersion: v1\nkind: Secret\n",
			},
			want: []string{"nodes cluster read", "secrets"},
		},
		"kinds and versions of different branches": {
			files: map[string]string{"templates/a.yaml": `{{ if .Values.job }}
apiVersion: batch/v1
{{ else }}
apiVersion: apps/v1
{{ end }}
{{ if .Values.job }}
kind: Job
{{ else }}
kind: Deployment
{{ end }}
---
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
---
{{ if .Values.monitor }}
apiVersion: monitoring.coreos.com/v1
{{ else }}
apiVersion: v1
{{ end }}
{{ if .Values.monitor }}
kind: PodMonitor
{{ else }}
kind: Service
{{ end }}
---
apiVersion: {{ if .Values.serverless }}serving.knative.dev/v1{{ else }}v1{{ end }}
kind: Service
---
{{ if .Values.policy }}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ else }}
apiVersion: apiregistration.k8s.io/v1
{{ end }}
kind: Secret
`},
			want: []string{
				"secrets", "services", "deployments.apps", "jobs.batch", "podmonitors.monitoring.coreos.com optional", "poddisruptionbudgets.policy", "podsecuritypolicies.policy optional cluster",
				"services.serving.knative.dev optional",
			},
		},
		"the default of a value": {
			files: map[string]string{
				"values.yaml":      "monitor: {apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor}",
				"templates/a.yaml": "apiVersion: {{ .Values.monitor.apiVersion }}\nkind: {{ .Values.monitor.kind | quote }}\n",
			},
			want:    []string{"servicemonitors.monitoring.coreos.com optional"},
			unknown: []string{"templates/a.yaml: kind: {{ .Values.monitor.kind | quote }}"},
		},
		"what is no object of its own": {
			files: map[string]string{
				"templates/a.yaml": `kind: ServiceAccount
apiVersion: v1
---
apiVersion: apps/v1
kind: StatefulSet
spec:
  volumeClaimTemplates:
  - kind: PersistentVolumeClaim
    apiVersion: v1
`,
				"templates/NOTES.txt": "kind: Nothing\n", "README.md": "kind: Nothing\n", "values.yaml": "kind: Nothing\n",
			},
			want: []string{"serviceaccounts", "statefulsets.apps"},
		},
		"a list": {
			files: map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n- apiVersion: batch/v1\n  kind: Job\n"},
			want:  []string{"secrets", "jobs.batch"},
		},
		"definitions and their objects": {
			files: map[string]string{
				"crds/gear.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: example.com, scope: Cluster, names: {kind: Gear, plural: geari}}\n" +
					"---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: example.com, scope: Namespaced, names: {kind: Cog, plural: cogs}}\n",
				"templates/a.yaml": "apiVersion: example.com/v1\nkind: Gear\n",
			},
			want: []string{"customresourcedefinitions.apiextensions.k8s.io cluster", "cogs.example.com defined", "geari.example.com cluster"},
		},
		"a definition of a kind in small letters": {
			files: map[string]string{
				"crds/gear.yaml": "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: example.com, scope: Namespaced, names: {kind: gear, plural: gears}}}\n",
			},
			want: []string{"customresourcedefinitions.apiextensions.k8s.io cluster", "gears.example.com defined"},
		},
		"a definition that is a template": {
			files: map[string]string{"templates/crd.yaml": `{{ if .Values.crds }}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.example.com}
spec:
  group: example.com
  names:
    kind: Gear
    plural: gears
  scope: Cluster
{{ end }}`},
			want: []string{"customresourcedefinitions.apiextensions.k8s.io cluster", "gears.example.com cluster defined"},
		},
		"sub-charts": {
			files: map[string]string{
				"files/templates/a.j2": "{% if %}kind: Nothing{{ if }}", "files/b.tgz": "no chart",
				"charts/one/charts/deep/templates/a.yaml": "apiVersion: batch/v1\nkind: Job\n",
				"charts/one/templates/a.yaml":             "apiVersion: v1\nkind: ConfigMap\n",
				"charts/two.tgz":                          packed(t, map[string]string{"two/templates/a.yaml": "apiVersion: v1\nkind: Secret\n", "two/values.yaml": "kind: X"}),
			},
			want: []string{"configmaps", "secrets", "jobs.batch"},
		},
		"names that no server has": {
			files: map[string]string{
				"crds/a.yaml":      `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: example.com, names: {kind: Gear, plural: 'x], verbs: ["*"'}}}`,
				"crds/b.yaml":      `{apiVersion: '{{ fail "no" }}/v1', kind: Gear}` + "\n---\n" + `{apiVersion: v1, kind: '{{ fail "no" }}'}`,
				"templates/a.yaml": `{{ lookup "*/v1" "Secret" "" "" }}`,
			},
			want: []string{"customresourcedefinitions.apiextensions.k8s.io cluster"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, unknown := scanned(t, test.files)
			check.EqualNamed(t, "kinds", test.want, got)
			check.EqualNamed(t, "unknown", test.unknown, unknown, cmpopts.EquateEmpty())
		})
	}
}

// An object that is rendered and never applied needs no rights: a hook of tests, or of Helm 2.
func TestTheRightsOfHooks(t *testing.T) {
	none, pods := []string(nil), []string{"pods"}
	pod := func(annotations string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    " + annotations + "\nspec: {}\n"
	}
	const more = "\n    {{- with .Values.podAnnotations }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}"
	const helper = `{{ define "hook" }}{{ if .weight }}
helm.sh/hook-weight: "1"{{ end }}
"helm.sh/hook": test
{{- end }}`
	const values = "tests: {hook: test, other: post-install, annotations: {helm.sh/hook: test-success}}"
	of := func(template string) map[string]string {
		return map[string]string{"templates/a.yaml": template, "templates/_helpers.tpl": helper, "values.yaml": values}
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a test":                             {of(pod(`helm.sh/hook: test`)), none},
		"double quotes":                      {of(pod(`"helm.sh/hook": "test-success"`)), none},
		"single quotes, and a comment":       {of(pod(`'helm.sh/hook': 'test' # or pre-install`)), none},
		"more annotations after it":          {of(pod(`"helm.sh/hook": test` + more)), none},
		"more annotations before it":         {of(pod(`a: b` + more + "\n    helm.sh/hook: test")), none},
		"annotations in one line":            {of(pod(`{"helm.sh/hook": test, helm.sh/hook-weight: "1"}`)), none},
		"two events of tests":                {of(pod(`helm.sh/hook: test, test-success`)), none},
		"an event of Helm 2":                 {of(pod(`helm.sh/hook: pre-install,crd-install`)), none},
		"another event, too":                 {of(pod(`helm.sh/hook: "pre-install,test"`)), pods},
		"another event, behind":              {of(pod(`"helm.sh/hook": test,post-upgrade` + more)), pods},
		"other events":                       {of(pod(`helm.sh/hook: pre-rollback`)), pods},
		"an annotation that is a comment":    {of(pod(`# "helm.sh/hook": test`)), pods},
		"alternatives":                       {of(pod(`helm.sh/hook: {{ if .Values.a }}test{{ else }}test-success{{ end }}`)), none},
		"alternatives, one of which applies": {of(pod(`helm.sh/hook: {{ ternary "test" "post-install" .Values.a }}`)), pods},
		"a default":                          {of(pod(`helm.sh/hook: {{ .Values.tests.hook | quote }}`)), none},
		"a default that applies":             {of(pod(`helm.sh/hook: {{ .Values.tests.other }}`)), pods},
		"an event that is not known":         {of(pod(`helm.sh/hook: {{ .Values.tests.unknown }}`)), pods},
		"annotations by default":             {of(pod(`{{- toYaml .Values.tests.annotations | nindent 4 }}`)), none},
		"annotations by default, in a with":  {of(pod(`{{- with $.Values.tests.annotations }}{{- toYaml . | nindent 4 }}{{ end }}`)), none},
		"a definition":                       {of(pod(`{{- include "hook" . | nindent 4 }}`)), none},
		"a definition in a branch":           {of(pod(`{{- if .Values.a }}{{ include "hook" . | nindent 4 }}{{ end }}`)), pods},
		"an annotation in a branch":          {of(pod("{{- if .Values.a }}\n    helm.sh/hook: test\n    {{- end }}")), pods},
		"an object in a branch":              {of("{{- if .Values.a }}\n" + pod(`helm.sh/hook: test`) + "{{- end }}"), none},
		"another object in the other branch": {of("{{ if .Values.a }}\n" + pod("helm.sh/hook: test") + "{{ else }}\napiVersion: v1\nkind: Secret\n{{ end }}"), []string{"secrets"}},
		"a manifest in a ConfigMap":          {of("apiVersion: v1\nkind: ConfigMap\ndata:\n  pod.yaml: |\n    metadata: {annotations: {helm.sh/hook: test}}\n"), []string{"configmaps"}},
		"annotations of pods":                {of("apiVersion: apps/v1\nkind: Deployment\nspec:\n  annotations:\n    {{- include \"hook\" . | nindent 4 }}\n    {{- toYaml .Values.tests.annotations | nindent 4 }}\n"), []string{"deployments.apps"}},
		"annotations behind the data":        {of("apiVersion: v1\nkind: Secret\ndata: {}\nmetadata: {annotations: {helm.sh/hook: test}}\n"), none},
		"the kind first":                     {of("kind: Pod\napiVersion: v1\nmetadata: {annotations: {helm.sh/hook: test}}\n---\nkind: Secret\napiVersion: v1\n"), []string{"secrets"}},
		"defaults of sub-charts": {map[string]string{
			"charts/one/values.yaml": values, "charts/one/templates/a.yaml": pod(`{{- toYaml .Values.tests.annotations | nindent 4 }}`),
			"charts/two.tgz": packed(t, map[string]string{"two/values.yaml": values, "two/templates/a.yaml": pod(`helm.sh/hook: {{ .Values.tests.hook }}`)}),
		}, none},
		"a definition of a kind in a hook of Helm 2": {of("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  annotations: {helm.sh/hook: crd-install}\n" +
			"spec:\n  group: example.com\n  names:\n    kind: Gear\n    plural: gears\n"), none},
	} {
		t.Run(name, func(t *testing.T) {
			got, unknown := scanned(t, test.files)
			check.EqualNamed(t, "kinds", test.want, got, cmpopts.EquateEmpty())
			check.EqualNamed(t, "unknown", none, unknown, cmpopts.EquateEmpty())
		})
	}
}

// packed returns a packed chart.
func packed(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for name, text := range files {
		check.NoError(t, archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
		check.Must(archive.Write([]byte(text)))(t)
	}
	check.NoError(t, archive.Close())
	return string(gzipped.Pack(out.Bytes()))
}

func TestATemplateThatDoesNotParseIsNamed(t *testing.T) {
	files := fstest.MapFS{"chart/templates/a.yaml": {Data: []byte("{{ if }}")}}
	if _, _, err := ScanChart(files, "chart"); err == nil || !strings.Contains(err.Error(), "templates/a.yaml does not parse") {
		t.Errorf("got %v", err)
	}
}

func TestRenderedKindsAreMerged(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	merged := Merge([]Kind{{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Origins: []string{"a"}}}, OfObjects([]*unstructured.Unstructured{object}))
	want := []Kind{{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true, Origins: []string{"a"}, Rendered: true}}
	check.Equal(t, want, merged)
}

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

func TestTheRightsOfAnOperator(t *testing.T) {
	deployment, monitor := builtIn("Deployment"), Kind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor", Resource: "servicemonitors", Namespaced: true, Optional: true, Origins: []string{"templates/a.yaml", "templates/b.yaml", "templates/c.yaml"}}
	all := Merge(append(append(deployment, append(builtIn("ClusterRole"), builtIn("ClusterRoleBinding")...)...), append(builtIn("RoleBinding"), monitor,
		Kind{Group: "example.com", Kind: "Gear", Resource: "gears", Defined: true})...), nil)
	inNamespaces := Merge(append(deployment, append(builtIn("RoleBinding"), monitor)...), nil)
	for file, test := range map[string]struct {
		operator Operator
		kinds    []Kind
	}{
		"rbac.yaml":                        {Operator{}, all},
		"rbac-namespaces.yaml":             {Operator{CreatesNamespaces: true}, deployment},
		"rbac-namespace.yaml":              {Operator{}, append(builtIn("Namespace"), deployment...)},
		"rbac-namespaced.yaml":             {Operator{Namespaced: true}, inNamespaces},
		"rbac-impersonate.yaml":            {Operator{Deployer: "deployer"}, inNamespaces},
		"rbac-impersonate-namespaced.yaml": {Operator{Deployer: "deployer", Namespaced: true}, inNamespaces},
	} {
		t.Run(file, func(t *testing.T) {
			o := test.operator
			o.Account, o.Group, o.Resource, o.Namespace = "shop-operator", "shop.example.com", "shops", "{{ .Release.Namespace }}"
			got := check.Must(o.YAML(test.kinds))(t)
			check.Golden(t, "testdata/"+file, got, manifeststest.Update())
			if o.Namespaced && strings.Contains(got, "ClusterRole\n") {
				t.Error("it has a ClusterRole")
			}
		})
	}
}

func TestRightsInNamespacesExcludeKindsWithoutNamespace(t *testing.T) {
	for want, o := range map[string]Operator{"--namespaced": {Namespaced: true}, "--impersonate": {Deployer: "deployer"}} {
		_, err := o.YAML(append(builtIn("ClusterRole"), append(builtIn("Deployment"), builtIn("Namespace")...)...))
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ": ClusterRole, Namespace") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestATypeThatAProgramAddsToTheSchemeOfClientGoIsOptional(t *testing.T) {
	mine := schema.GroupVersionKind{Group: "mine.example.com", Version: "v1", Kind: "Mine"}
	scheme.Scheme.AddKnownTypeWithName(mine, &unstructured.Unstructured{})
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mine)
	kinds := OfObjects([]*unstructured.Unstructured{object})
	if len(kinds) != 1 || !kinds[0].Optional || whetherGone(kinds, true) == nil {
		t.Errorf("got %+v", kinds)
	}
}

func TestRolesAndBindingsEscalate(t *testing.T) {
	role, read := builtIn("Role"), builtIn("Role")
	read[0].Read = true
	for name, test := range map[string]struct {
		kinds []Kind
		want  bool
	}{
		"a role": {role, true}, "a binding": {builtIn("ClusterRoleBinding"), true}, "a role that is read": {read, false}, "a workload": {builtIn("Deployment"), false},
	} {
		check.SameNamed(t, name, test.want, Escalates(test.kinds))
	}
}

// The server knows the plural names and the scopes of all built-in kinds as this package does.
func TestBuiltInKindsAreThoseOfTheServer(t *testing.T) {
	client := check.Must(discovery.NewDiscoveryClientForConfig(env.Shared(t).Config()))(t)
	_, lists, err := client.ServerGroupsAndResources()
	check.NoError(t, err)
	compared := 0
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			got := kindIn(list.GroupVersion, resource.Kind)
			if got.Optional || got.Resource != resource.Name || got.Namespaced != resource.Namespaced {
				t.Errorf("%s %s: is %+v, want resource %s, namespaced %t", list.GroupVersion, resource.Kind, got, resource.Name, resource.Namespaced)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("only %d kinds were compared", compared)
	}
}
