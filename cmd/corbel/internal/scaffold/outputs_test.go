// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/status"
	"github.com/corbel-run/corbel/test/check"
)

func TestTheOptionsOfAProjectHaveTheUsualOutputs(t *testing.T) {
	const (
		ingress  = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: '{{ .Release.Name }}-web'}\nspec: {rules: [{host: shop.example.com}]}\n"
		balancer = "apiVersion: v1\nkind: Service\nmetadata: {name: 'web-{{ .Release.Name }}'}\nspec: {type: LoadBalancer}\n"
	)
	host := output{"host", "networking.k8s.io", "Ingress", "*-web", "self.spec.?rules[?0].?host"}
	address := output{"address", "", "Service", "web-*", "self.?status.?loadBalancer.?ingress[?0].?hostname.or(self.?status.?loadBalancer.?ingress[?0].?ip)"}
	for name, test := range map[string]struct {
		manifests string
		want      []output
	}{
		"both": {balancer + "---\n" + ingress, []output{address, host}},
		"a Service and an Ingress of other forms": {"apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\n", nil},
		"two Services that a pattern matches":     {balancer + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web-second}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := learnFrom(t, Options{Form: FormChart}, nil, "templates/a.yaml", test.manifests)
			check.NoError(t, err)
			check.Equal(t, test.want, l.outputs)
			for _, o := range l.outputs {
				check.Must(status.CompileOutput(o.Expression))(t)
			}
			c := contents{Options: Options{Name: "shop-operator", Kind: "Shop", Group: "shop.example.com", Form: FormChart, Namespaced: true}, Folder: "chart", Outputs: l.outputs}
			check.NoError(t, c.validate())
			main := string(check.Must(c.files())(t)["main.go"])
			if len(test.want) == 0 {
				check.Same(t, false, strings.Contains(main, "Outputs") || strings.Contains(main, "policies"))
				return
			}
			check.Contains(t, main, `{Name: "host", Type: policies.TypeInfo{Group: "networking.k8s.io", Kind: "Ingress"}, Object: "*-web", Expression: "self.spec.?rules[?0].?host"},`,
				`policies "github.com/corbel-run/corbel/api/v1alpha1"`)
		})
	}
}
