// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// goField returns the lines of a field in its struct.
func goField(t *testing.T, field *Field) string {
	t.Helper()
	code := check.Must(GoTypes(&Field{Type: Object, Fields: []*Field{field}}, "Shop"))(t)
	_, body, _ := strings.Cut(code.Source, "struct {\n")
	body, _, _ = strings.Cut(body, "\n}\n")
	return strings.ReplaceAll(body, "\t", "")
}

func TestKeysBecomeIdentifiers(t *testing.T) {
	for key, want := range map[string]string{
		"tls": "TLS", "baseUrl": "BaseURL", "externalIPs": "ExternalIPs", "pod-ids": "PodIDs", "httpsPort": "HTTPSPort", "caBundle": "CABundle", "https": "HTTPS", "os": "Os", "capacity": "Capacity",
		"replicaCount": "ReplicaCount", "9to5": "X9to5",
	} {
		check.SameNamed(t, key, want, goName(key))
	}
}

func TestMarkers(t *testing.T) {
	length := int64(2)
	limit := 0.5
	for _, test := range []struct {
		name  string
		field *Field
		want  []string
	}{
		{"a default is said", &Field{Key: "a", Type: Integer, Default: int64(3)}, []string{"// The chart sets 3 by default.", "// +optional", "A *int64 `json:\"a,omitempty\"`"}},
		{"after the doc", &Field{Key: "a", Type: Bool, Doc: "The switch", Default: false}, []string{"// The switch. The chart sets false by default.", "// +optional", "A *bool `json:\"a,omitempty\"`"}},
		{"unless that is too long", &Field{Key: "a", Type: Bool, Doc: strings.Repeat("x", 170), Default: true},
			[]string{"// The chart sets true by default.", "// " + strings.Repeat("x", 170), "// +optional", "A *bool `json:\"a,omitempty\"`"}},
		{"unless it is empty", &Field{Key: "a", Type: String, Doc: "The text.", Default: ""}, []string{"// The text.", "// +optional", "A *string `json:\"a,omitempty\"`"}},
		{"but not a long one", &Field{Key: "a", Type: String, Default: strings.Repeat("x", 100)}, []string{"// The chart has a default.", "// +optional", "A *string `json:\"a,omitempty\"`"}},
		{"nor a secret", &Field{Key: "rootPassword", Type: SecretKey, Doc: "The password.", Default: "x"},
			[]string{"// The password. The chart has a default.", "// +optional", "RootPassword *component.SecretKeyReference `json:\"rootPassword,omitempty\" fallbackKeys:\"rootPassword,password\"`"}},
		{"what is required by the schema can be set below values", &Field{Key: "a", Type: String, Required: true, MinLength: &length, Enum: []any{"", "b;c", `d"`}},
			[]string{"// +optional", `// +kubebuilder:validation:Enum={"","b;c","d\""}`, "// +kubebuilder:validation:MinLength=2", "A *string `json:\"a,omitempty\"`"}},
		{"a limit", &Field{Key: "a", Type: Number, Minimum: &limit}, []string{"// +optional", "// +kubebuilder:validation:Schemaless", "// +kubebuilder:validation:Type=number", "// +kubebuilder:validation:Minimum=0.5", "A *apiextensionsv1.JSON `json:\"a,omitempty\"`"}},
		{"a pattern", &Field{Key: "a", Type: String, Default: "x\n+y", Pattern: "^`\"\\d$"},
			[]string{`// The chart sets "x\n+y" by default.`, "// +optional", "// +kubebuilder:validation:Pattern=\"^`\\\"\\\\d$\"", "A *string `json:\"a,omitempty\"`"}},
		{"a doc is no marker", &Field{Key: "a", Type: Bool, Doc: "++kubebuilder:default=1\n// +x \x00`*/\u2028y"},
			[]string{"// plus kubebuilder:default=1 // +x `*/ y", "// +optional", "A *bool `json:\"a,omitempty\"`"}},
		{"nor is a line of it", &Field{Key: "a", Type: Bool, Doc: strings.Repeat("x", 99) + " +y"},
			[]string{"// " + strings.Repeat("x", 99), "// plus y", "// +optional", "A *bool `json:\"a,omitempty\"`"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.EqualNamed(t, "the field differs", strings.Join(test.want, "\n"), goField(t, test.field))
		})
	}
}

func TestGoTypesRefuses(t *testing.T) {
	object := func(fields ...*Field) *Field { return &Field{Type: Object, Fields: fields} }
	for _, test := range []struct {
		name, kind string
		root       *Field
		want       []string
	}{
		{"no identifier", "my-shop", object(), []string{`"my-shop" is no exported Go identifier`}},
		{"no exported one", "shop", object(), []string{`"shop" is no exported`}},
		{"no tree", "Shop", nil, []string{"is no object"}},
		{"all mistakes", "Shop", object(&Field{Key: "a", Type: Bool}, &Field{Key: "a", Type: Bool}, &Field{Key: "b,c", Type: Bool}, &Field{Key: "d", Type: "Float"},
			&Field{Key: "e", Type: List}, &Field{Key: "f", Type: Core, Core: "os.File"}),
			[]string{`"a" is no JSON key`, `"b,c" is no JSON key`, `"d" has the unknown type "Float"`, `"e" has no type for its elements`, `"os.File" is no Kubernetes type`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			check.Fails(t, check.ErrorOf(GoTypes(test.root, test.kind)), test.want...)
		})
	}
}
