// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/status"
	"github.com/corbel-run/corbel/test/check"
)

func TestTheOptionsOfAProjectHaveTheUsualOutputs(t *testing.T) {
	const (
		ingress  = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: '{{ .Release.Name }}-web'}\nspec: {rules: [{host: shop.example.com}]}\n"
		balancer = "apiVersion: v1\nkind: Service\nmetadata: {name: 'web-{{ .Release.Name }}'}\nspec: {type: LoadBalancer}\n"
		route    = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: '{{ .Release.Name }}'}\nspec: {hostnames: [shop.example.com]}\n"
		gateway  = "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: '{{ .Release.Name }}-web'}\nspec: {gatewayClassName: web, listeners: [{name: http, port: 80, protocol: HTTP}]}\n"
	)
	host := output{"host", "networking.k8s.io", "Ingress", "*-web", "self.spec.?rules[?0].?host"}
	address := output{"address", "", "Service", "web-*", "self.?status.?loadBalancer.?ingress[?0].?hostname.or(self.?status.?loadBalancer.?ingress[?0].?ip)"}
	for name, test := range map[string]struct {
		manifests string
		want      []output
	}{
		"both": {balancer + "---\n" + ingress, []output{address, host}},
		"the API of gateways": {gateway + "---\n" + route, []output{
			{"address", "gateway.networking.k8s.io", "Gateway", "*-web", "self.?status.?addresses[?0].?value"}, {"host", "gateway.networking.k8s.io", "HTTPRoute", "*", "self.spec.?hostnames[?0]"}}},
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
			files := check.Must(c.files())(t)
			main, columns := string(files["main.go"]), string(files["api/v1alpha1/shop.go"])
			check.Same(t, len(test.want) > 0, strings.Contains(main, `policies "github.com/corbel-run/corbel/api/v1alpha1"`))
			check.Same(t, len(test.want), strings.Count(main, "Expression: "))
			check.Same(t, len(test.want), strings.Count(columns, ".status.outputs."))
			for _, o := range test.want {
				check.Contains(t, main, fmt.Sprintf("{Name: %q, Type: policies.TypeInfo{Group: %q, Kind: %q}, Object: %q, Expression: %q},", o.Name, o.Group, o.Kind, o.Object, o.Expression))
				check.Contains(t, columns, fmt.Sprintf("\n// +kubebuilder:printcolumn:name=%q,type=string,JSONPath=`.status.outputs.%s`\n", o.Name, o.Name))
			}
		})
	}
}
