// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// outline writes a tree as lines of path, type, origin and what else is set.
func outline(field *Field, path string) []string {
	var lines []string
	if path != "" {
		lines = append(lines, path+" "+traits(field))
	}
	for _, inner := range field.Fields {
		lines = append(lines, outline(inner, join(path, inner.Key))...)
	}
	if field.Elem != nil {
		lines = append(lines, outline(field.Elem, path+"[]")...)
	}
	return lines
}

func traits(field *Field) string {
	words := []string{string(field.Type)}
	add := func(format string, set bool, value any) {
		if set {
			words = append(words, fmt.Sprintf(format, value))
		}
	}
	add("%s", field.Core != "", field.Core)
	add("%s", true, field.Origin)
	add("default=%v", field.Default != nil, field.Default)
	add("enum=%v", field.Enum != nil, field.Enum)
	if field.Minimum != nil {
		add("min=%v", true, *field.Minimum)
	}
	if field.Maximum != nil {
		add("max=%v", true, *field.Maximum)
	}
	if field.MinLength != nil {
		add("minLength=%v", true, *field.MinLength)
	}
	if field.MaxLength != nil {
		add("maxLength=%v", true, *field.MaxLength)
	}
	add("pattern=%s", field.Pattern != "", field.Pattern)
	add("required", field.Required, "")
	add("%q", field.Doc != "", field.Doc)
	return strings.ReplaceAll(strings.Join(words, " "), "%!(EXTRA string=)", "")
}

// lesson is a source and what is learned from it.
type lesson struct {
	name, values, schema string
	want                 []string
	// notes are parts of the notes.
	notes []string
}

func (l lesson) run(t *testing.T) {
	t.Helper()
	root, notes, err := Learn(Source{Values: []byte(l.values), Schema: []byte(l.schema)})
	check.NoError(t, err)
	check.EqualNamed(t, "the fields differ", l.want, outline(root, ""))
	for i, want := range l.notes {
		if i >= len(notes) || !strings.Contains(notes[i], want) {
			t.Errorf("note %d of %q does not contain %q", i, notes, want)
		}
	}
	if len(notes) != len(l.notes) {
		t.Errorf("there are %d notes instead of %d: %q", len(notes), len(l.notes), notes)
	}
}

func runLessons(t *testing.T, lessons []lesson) {
	t.Helper()
	for _, lesson := range lessons {
		t.Run(lesson.name, lesson.run)
	}
}

// boilerplate begins as the comment that helm create writes below the value resources.
const boilerplate = "# We usually recommend not to specify default resources and to leave this\n# to the user. Remove the braces after 'resources:'.\n"

func TestLearnFromValues(t *testing.T) {
	runLessons(t, []lesson{
		{name: "nothing"},
		{name: "scalars", values: "a: true\nb: 1\nc: 1.5\nd: 1.0\ne: text\nf: \"\"\ng: 1Gi\nh: 18446744073709551615",
			want: []string{
				"a Bool Value default=true", "b Integer Value default=1", "c Number Value default=1.5", "d Number Value default=1",
				"e String Value default=text", "f String Value default=", "g String Value default=1Gi", "h Number Value default=1.8446744073709552e+19",
			}},
		{name: "what is empty", values: "a: {}\nb: []\nc:\nd: ~",
			want:  []string{"a Any None default=map[]", "b Any None default=[]", "c Any None", "d Any None"},
			notes: []string{"a accepts any value: its default is an empty object", "b accepts any value: its default is an empty list", "c accepts any value: it has no default", "d accepts"}},
		{name: "YAML 1.1, as Helm reads it", values: "a: yes\nb: off\non: 1",
			want: []string{"a Bool Value default=true", "b Bool Value default=false", "true Integer Value default=1"}},
		{name: "the order of the file, with comments", values: "# Of z.\nz: 1\n# Of a.\na:\n  # Of w.\n  w: 2\n  b: 3",
			want: []string{`z Integer Value default=1 "Of z."`, `a Object Value "Of a."`, `a.w Integer Value default=2 "Of w."`, "a.b Integer Value default=3"}},
		{name: "what looks like a comment in a text", values: "a: |\n  text\n  # no comment\nb: 1\nc:\n  - |\n    # none\nd: 2",
			want: []string{"a String Value default=text\n# no comment\n", "b Integer Value default=1", "c List Value default=[# none\n]", "c[] String Value", "d Integer Value default=2"}},
		{name: "YAML that is commented out is no doc", values: "# The doc.\n# key: value\n# - item\na: 1\n# key:\n#   b: 1\n\n# - x\nb: 1",
			want: []string{`a Integer Value default=1 "The doc."`, "b Integer Value default=1"}},
		{name: "a comment that is indented deeper is of the value above", values: "a:\n  b: 1\n  # Of c.\n  c: {}\n    # limits: 1\n    # Of b.\n  d: 1\n  # Of b.\ne: 1\n# Of f.\nf:\n# Of g.\n  g: 1",
			want: []string{
				"a Object Value", "a.b Integer Value default=1", `a.c Any None default=map[] "Of c."`, "a.d Integer Value default=1", "e Integer Value default=1",
				`f Object Value "Of f."`, `f.g Integer Value default=1 "Of g."`,
			},
			notes: []string{"a.c accepts any value"}},
		{name: "the boilerplate of helm create documents no value", values: boilerplate + "resources: {}\n" + boilerplate + "# limits:\n#   cpu: 100m\naffinity: {}\n" + boilerplate + "# - a\n# Of a.\n# b: 1\na: 1\n# Of c.\n" + boilerplate + "c: 1",
			want: []string{"resources Core corev1.ResourceRequirements Name default=map[]", "affinity Core corev1.Affinity Name default=map[]", `a Integer Value default=1 "Of a."`, `c Integer Value default=1 "Of c."`}},
		{name: "lists", values: "a: [x, w]\nb: [1, 2.5]\nc: [1, x]\nd: [1, true]\ne: [null]\nf: [[1], [2]]",
			want: []string{
				"a List Value default=[x w]", "a[] String Value", "b List Value default=[1 2.5]", "b[] Number Value",
				"c List Value default=[1 x]", "c[] IntOrString Value", "d List Value default=[1 true]", "d[] Any Value",
				"e Any None default=[<nil>]", "f List Value default=[[1] [2]]", "f[] List Value", "f[][] Integer Value",
			},
			notes: []string{"d[] accepts any value: its elements have different types", "e accepts any value"}},
		{name: "lists of objects have the fields of all elements", values: "a: [{x: 1}, {v: z, x: 2}, {x: w}]",
			want: []string{"a List Value default=[map[x:1] map[v:z x:2] map[x:w]]", "a[] Object Value", "a[].x IntOrString Value", "a[].v String Value"}},
		{name: "anchors", values: "a: &a {x: 1, w: 2}\nb: *a\nc: {<<: *a, z: 3}",
			want: []string{
				"a Object Value", "a.x Integer Value default=1", "a.w Integer Value default=2",
				"b Object Value", "b.x Integer Value default=1", "b.w Integer Value default=2",
				"c Object Value", "c.z Integer Value default=3", "c.w Integer Value default=2", "c.x Integer Value default=1",
			}},
		{name: "keys that no JSON tag carries", values: "\"a,b\": 1\n'c\"d': 1\n\"\": 1\n\"-\": 1\n'e\\f': 1\ng: {\"h,i\": 1}\nk.l: 1",
			want: []string{"g Any Value default=map[h,i:1]", "k.l Integer Value default=1"},
			notes: []string{`"a,b" is left out`, `"c\"d" is left out`, `"" is left out: no Go field can have the key ""; set it in the field values`, `"-" is left out`, `"e\\f" is left out`,
				`"g.h,i" is left out: no Go field can have the key "h,i"`, "g accepts any value: none of its keys can be a field"}},
	})
}

func TestLearnFromNames(t *testing.T) {
	runLessons(t, []lesson{
		{name: "Kubernetes types", values: "resources: {}\naffinity: {}\ntolerations: []\nnodeSelector: {}\nextraVolumes: []\ninitContainers: []\npodLabels: {}\nextraEnvVars: []",
			want: []string{
				"resources Core corev1.ResourceRequirements Name default=map[]", "affinity Core corev1.Affinity Name default=map[]",
				"tolerations List Name default=[]", "tolerations[] Core corev1.Toleration Name",
				"nodeSelector Map Name default=map[]", "nodeSelector[] String Name",
				"extraVolumes List Name default=[]", "extraVolumes[] Core corev1.Volume Name",
				"initContainers List Name default=[]", "initContainers[] Core corev1.Container Name",
				"podLabels Map Name default=map[]", "podLabels[] String Name",
				"extraEnvVars List Name default=[]", "extraEnvVars[] Core corev1.EnvVar Name",
			}},
		{name: "values that do not fit", values: "resources: {limit: {cpu: 1}}\ntolerations: {}\nenv: {A: b}\nextraVolumes: ['{{ x }}']\nextraResources: {}\nlabels: {a: 1}",
			want: []string{
				"resources Object Value", "resources.limit Object Value", "resources.limit.cpu Integer Value default=1",
				"tolerations Any None default=map[]", "env Map Name default=map[A:b]", "env[] String Name",
				"extraVolumes List Value default=[{{ x }}]", "extraVolumes[] String Value", "extraResources Any None default=map[]",
				"labels Object Value", "labels.a Integer Value default=1",
			},
			notes: []string{"tolerations accepts any value", "extraResources accepts any value"}},
		{name: "a switch beside the fields of a type", values: "livenessProbe: {enabled: true, periodSeconds: 5}\nreadinessProbe: {enabled: true, extra: 1}\nstartupProbe: {enabled: false}",
			want: []string{
				"livenessProbe Object corev1.Probe Name", "livenessProbe.enabled Bool Value default=true",
				"readinessProbe Object Value", "readinessProbe.enabled Bool Value default=true", "readinessProbe.extra Integer Value default=1",
				"startupProbe Object corev1.Probe Name", "startupProbe.enabled Bool Value default=false",
			}},
		{name: "security contexts", values: "a: {securityContext: {fsGroup: 1}}\nb: {securityContext: {}, podSecurityContext: {}}\nc: {securityContext: {}}\nd: {securityContext: {capabilities: {}}}",
			want: []string{
				"a Object Value", "a.securityContext Core corev1.PodSecurityContext Name default=map[fsGroup:1]",
				"b Object Value", "b.securityContext Core corev1.SecurityContext Name default=map[]", "b.podSecurityContext Core corev1.PodSecurityContext Name default=map[]",
				"c Object Value", "c.securityContext Any None default=map[]",
				"d Object Value", "d.securityContext Core corev1.SecurityContext Name default=map[capabilities:map[]]",
			},
			notes: []string{"c.securityContext accepts any value"}},
		{name: "strategies", values: "strategy: {type: Recreate}\nupdateStrategy: {rollingUpdate: {partition: 1}}",
			want: []string{
				"strategy Core appsv1.DeploymentStrategy Name default=map[type:Recreate]",
				"updateStrategy Core appsv1.StatefulSetUpdateStrategy Name default=map[rollingUpdate:map[partition:1]]",
			}},
		{name: "by the keys above", values: "ingress: {tls: []}\ntls: []\nrbac: {rules: []}",
			want: []string{
				"ingress Object Value", "ingress.tls List Name default=[]", "ingress.tls[] Core networkingv1.IngressTLS Name", "tls Any None default=[]",
				"rbac Object Value", "rbac.rules List Name default=[]", "rbac.rules[] Core rbacv1.PolicyRule Name",
			},
			notes: []string{"tls accepts any value"}},
		{name: "scalars that are not set", values: "replicas:\nnodePort: \"\"\nterminationGracePeriodSeconds: \"\"\nenabled:\nstorageClassName:\nmaxUnavailable: 1\nsecret:",
			want: []string{
				"replicas Integer Name", "nodePort IntOrString Name default=", "terminationGracePeriodSeconds IntOrString Name default=", "enabled Bool Name",
				"storageClassName String Name", "maxUnavailable IntOrString Name default=1", "secret Any None",
			},
			notes: []string{"secret accepts any value"}},
		{name: "the quantities of a well-known type are decoded strictly", values: "resources: {limits: {cpu: lots}}",
			want: []string{"resources Object Value", "resources.limits Object Value", "resources.limits.cpu String Value default=lots"}},
	})
}

func TestLearnFromComments(t *testing.T) {
	runLessons(t, []lesson{
		{name: "params", values: "## @param a [array] List of things\n## @param b.c [string, nullable, default: x] A text\n## @param d [object]\n##\na: []\nb:\n  c:\nd: {}",
			want: []string{
				`a List Comment default=[] "List of things"`, "a[] Any None", "b Object Value", `b.c String Comment "A text"`, "d Map Comment default=map[]", "d[] Any None",
			},
			notes: []string{"a has elements of any type: its comment", "d has elements of any type"}},
		{name: "a param of another type than the value", values: "## @param a [string] A number\na: 1\n## @param b [object]\nb: []",
			want:  []string{`a Integer Value default=1 "A number"`, "b Map Comment", "b[] Any None"},
			notes: []string{"a has a comment that calls it a string, but its value is an integer; the value counts", "b has elements"}},
		{name: "helm-docs", values: "# Other\n\n# ignored\n# -- (int) Number\n# of pods\n# @default -- `3`\na:\n# b -- (list) Named\nb: []\n# -- (percent of all) Share\nc: 1\n# -- (tpl/string) Text\nd:\n",
			want: []string{
				`a Integer Comment "Number of pods. Default: 3."`, `b List Comment default=[] "Named"`, "b[] Any None",
				`c Integer Value default=1 "(percent of all) Share"`, `d String Comment "Text"`,
			},
			notes: []string{"b has elements"}},
		{name: "blocks", values: "# @schema\n# type: [string, \"null\"]\n# enum: [a, b]\n# @schema\n# The doc.\na: b\n# @schema\n# type: array\n# items:\n#   type: object\n#   properties:\n#     x: {type: integer}\n# @schema\nb: []\n# @schema\n# required: true\n# type: string\n# @schema\nc:",
			want: []string{`a String Comment default=b enum=[a b] "The doc."`, "b List Comment default=[]", "b[] Object Comment", "b[].x Integer Comment", "c String Comment required"}},
		{name: "lines", values: "a: 1 # @schema type:[integer, null]; minimum:1; maximum: 9\n# @schema item:string;itemEnum:[x, y]\nb: []\nc: # @schema additionalProperties:{type: integer}\n  x: 1\n# @schema pattern:^a;b$;minLength:2\nd: \"\"",
			want: []string{
				"a Integer Comment default=1 min=1 max=9", "b List Comment default=[]", "b[] String Comment enum=[x y]",
				"c Map Comment default=map[x:1]", "c[] Integer Comment", "d String Value default= minLength=2 pattern=^a",
			}},
		{name: "keys below a key", values: "# @schema\n# type: object\n# properties:\n#   x: {type: string, enum: [a, b]}\n#   y:\n#     type: object\n#     properties:\n#       z: {type: integer, minimum: 1}\n# @schema\na:\n  x: a\n" +
			"b:\n  # @schema\n  # type: [integer, \"null\"]\n  # @schema\n  c:\n  d: # @schema type:[string,null]\n  e: # @schema properties:{f: {type: boolean}}\n    g: 1\n",
			want: []string{
				"a Object Comment", "a.x String Comment default=a enum=[a b]", "a.y Object Comment", "a.y.z Integer Comment min=1",
				"b Object Value", "b.c Integer Comment", "b.d String Comment", "b.e Object Comment", "b.e.g Integer Value default=1", "b.e.f Bool Comment",
			}},
		{name: "mistakes", values: "# @schema\n# - x\n# @schema\na: 1\n# @schema\n# type: string\nb: 1\n# @schema minimum:[\nc: 1",
			want:  []string{"a Integer Value default=1", "b Integer Value default=1", "c Integer Value default=1"},
			notes: []string{"a has an @schema comment that is no YAML object", "b has an @schema comment without an end", "c has an @schema comment whose minimum is no YAML"}},
		{name: "the root is described by no field", values: "# @schema.root\n# title: All\n# @schema.root\n# Of a.\na: 1", want: []string{`a Integer Value default=1 "Of a."`}},
		{name: "Windows", values: "# -- (string) Text\r\na:\r\n", want: []string{`a String Comment "Text"`}},
	})
}
