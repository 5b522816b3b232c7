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
		{"a default is stored", &Field{Key: "a", Type: Integer, Default: int64(3)}, []string{"// +optional", "// +kubebuilder:default=3", "A *int64 `json:\"a,omitempty\"`"}},
		{"unless it is zero", &Field{Key: "a", Type: Bool, Default: false}, []string{"// +optional", "A *bool `json:\"a,omitempty\"`"}},
		{"or says which image runs", &Field{Key: "imageTag", Type: String, Default: "1.2"}, []string{"// +optional", "ImageTag *string `json:\"imageTag,omitempty\"`"}},
		{"or too large for a marker", &Field{Key: "a", Type: Number, Default: 1e300},
			[]string{"// +optional", "// +kubebuilder:validation:Schemaless", "// +kubebuilder:validation:Type=number", "A *apiextensionsv1.JSON `json:\"a,omitempty\"`"}},
		{"or is not allowed", &Field{Key: "a", Type: String, Default: "x", MinLength: &length}, []string{"// +optional", "// +kubebuilder:validation:MinLength=2", "A *string `json:\"a,omitempty\"`"}},
		{"or not one of the constants", &Field{Key: "a", Type: String, Default: "x", Enum: []any{"", "b;c", `d"`}},
			[]string{"// +optional", `// +kubebuilder:validation:Enum={"","b;c","d\""}`, "A *string `json:\"a,omitempty\"`"}},
		{"or not large enough", &Field{Key: "a", Type: Number, Default: 0.25, Minimum: &limit},
			[]string{"// +optional", "// +kubebuilder:validation:Schemaless", "// +kubebuilder:validation:Type=number", "// +kubebuilder:validation:Minimum=0.5", "A *apiextensionsv1.JSON `json:\"a,omitempty\"`"}},
		{"or does not match", &Field{Key: "a", Type: String, Default: "x", Pattern: "^`\"\\d$"},
			[]string{"// +optional", "// +kubebuilder:validation:Pattern=\"^`\\\"\\\\d$\"", "A *string `json:\"a,omitempty\"`"}},
		{"a default of several lines", &Field{Key: "a", Type: String, Default: "x\n+y"}, []string{"// +optional", `// +kubebuilder:default="x\n+y"`, "A *string `json:\"a,omitempty\"`"}},
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
