// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestCuratedByNeed(t *testing.T) {
	const shop = "a: {}\nshop: {title: \"\", mode: x, size: 1Gi, more: {deep: [1], flag: true}}\nconfig: {}\nsettings: {}\n"
	fence := func(text string) string { return "```\n" + text + "\n```\n" }
	table := func(rows int, row string) string {
		return "| key | text |\n|---|---|\n" + row + strings.Repeat("| `shop.size` | text |\n", rows)
	}
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "v%d: 1\n", i)
	}
	count := func(from, to int) (names []string) {
		for i := from; i < to; i++ {
			names = append(names, fmt.Sprintf("v%d", i))
		}
		return names
	}
	const ingress = "ingress: {tls: {mode: x}}\n" // the object has a usual name, and is taken
	for _, test := range []struct {
		name, values string
		documents    Documents
		taken, left  []string
	}{
		{name: "nothing", values: shop},
		{name: "the line of a template that fails", values: shop, documents: Documents{
			Failure: "execution error at (shop/templates/a.yaml:2:3): the address is missing", Templates: map[string]string{"templates/a.yaml": "x\n{{ required \"the address is missing\" .Values.shop.title }}"},
		}, taken: []string{"shop.title"}},
		{name: "not the line of a template of a sub-chart", values: shop, documents: Documents{
			Failure: "execution error at (shop/charts/db/templates/a.yaml:1:3): the address is missing", Templates: map[string]string{"templates/a.yaml": "{{ .Values.shop.title }}"},
		}},
		{name: "the value that a failure names", values: shop, documents: Documents{Failure: "set shop.more.flag, see https://example.com/shop.size"}, taken: []string{"shop.more.flag"}},
		{name: "the place where values do not fit the schema", values: shop, documents: Documents{Failure: "- at '/shop/title': minLength: got 0, want 1\n- at '/shop': missing properties 'mode', 'other'"}, taken: []string{"shop.title", "shop.mode"}},
		{name: "the values of a sample, if the failure names none", values: shop, documents: Documents{Failure: "no", Sample: map[string]any{"shop": map[string]any{"size": "2Gi"}, "config": map[string]any{"b": 1}}}, taken: []string{"config", "shop.size"}},
		{name: "required in a branch", values: shop, documents: Documents{Templates: map[string]string{"a": "{{ .Values.shop.size | required \"no\" }}{{ fail (printf \"set shop.title in %s\" .x) }}"}}, taken: []string{"shop.title", "shop.size"}},
		{name: "required by the comment, if there is no default", values: "a:\n  # Required.\n  b: \"\"\n  # It is required.\n  c: x\n  # Required if d is set.\n  e: \"\"", taken: []string{"a.b"}},
		{name: "commands before examples before prose", values: shop, documents: Documents{Readme: "Set `shop.mode`.\n" + fence("shop:\n  size: 2Gi\nconfig: {b: 1}") + "    helm install x --set shop.more.deep[0]=1,unknown=2 --set-string 'shop.title=x'\n"},
			taken: []string{"shop.title", "shop.more.deep", "config", "shop.size", "shop.mode"}},
		{name: "the sections that users read first", values: shop, documents: Documents{Readme: "## Other\nSet shop.mode.\n## Install\n### Now\nSet shop.title.\n"}, taken: []string{"shop.title", "shop.mode"}},
		{name: "not those about earlier versions", values: shop, documents: Documents{Readme: "## Upgrading\n### To 2\nSet shop.mode.\n" + fence("shop: {size: 1Gi}") + "## Next\nSet shop.title.\n"}, taken: []string{"shop.title"}},
		{name: "what is no value", values: shop, documents: Documents{Readme: "a, config and https://shop.title and [b](shop.mode), config.yaml\n" + fence("apiVersion: v1\nkind: Shop\nshop: {size: 1}") + fence("b: 1\nc: 2\nshop: {size: 1}") + fence("- x")}},
		{name: "an object that prose names", values: "push: {key: \"\", id: x, more: {cert: \"\"}}\nimage: {digest: \"\"}", documents: Documents{Readme: "* `push` of `image`\n"}, taken: []string{"push.key", "push.more.cert"}},
		{name: "a short table", values: shop, documents: Documents{Readme: table(1, "| `shop.title` | text |\n")}, taken: []string{"shop.title", "shop.size"}},
		{name: "what a long table demands", values: shop, documents: Documents{Readme: table(40, "| [shop.title](#x) | **Required**: text |\n| shop.mode | required if x |\n| a | x |\n")}, taken: []string{"shop.title", "shop.size", "a", "shop.mode"}},
		{name: "notes, without what templates do", values: shop, documents: Documents{Notes: "{{ if .Values.shop.size }}set shop.title{{ end }}"}, taken: []string{"shop.title"}},
		{name: "questions", values: shop, documents: Documents{Questions: []byte("questions:\n- variable: shop.mode\n  subquestions: [{variable: shop.size}]\n- {variable: shop.title, required: true}\n- {variable: none}\n")},
			taken: []string{"shop.title", "shop.mode", "shop.size"}},
		{name: "no questions", values: shop, documents: Documents{Questions: []byte("- x")}},
		{name: "placeholders, secrets and scalars at the top level", values: "mode: x\nadminPassword: x\nfullnameOverride: \"\"\nshop: {host: shop.example.com, token: \"\"}\n# It is deprecated.\nold: x",
			taken: []string{"shop.host", "adminPassword", "mode", "shop.token"}},
		{name: "what differs between installations", values: "db: {hostname: \"\", port: 1}\nimage: {tag: x}\nclusters: [{name: your-cluster}]", taken: []string{"clusters", "db.hostname", "image.tag"}},
		{name: "names that are no identifiers", values: "\"a b\": {c-d: \"\"}\n9: {e: \"\"}\n", documents: Documents{Readme: "`9.e`\n| a b.c-d | x |\n"}, taken: []string{"a b.c-d"}},
		{name: "more than there is place for", values: many.String() + ingress, documents: Documents{Readme: fence(many.String() + ingress)},
			taken: append(count(0, 16), append([]string{"ingress.tls"}, count(16, 23)...)...), left: count(23, 30)},
	} {
		t.Run(test.name, func(t *testing.T) {
			taken, left := Curated(learnText(t, test.values), "", test.documents)
			check.EqualNamed(t, "taken", test.taken, taken)
			check.EqualNamed(t, "left", test.left, left)
		})
	}
}

func TestSecrets(t *testing.T) {
	const text = "adminPassword: x\napiKey: \"\"\nport: 1\ntoken: 1\nmode: x\n" +
		"auth: {existingSecret: \"\", existingSecretPasswordKey: password, secretKey: password, password: \"\"}\n" +
		"s3: {secretKey: \"\", existingSecretName: x, passwordSecret: x}\ndb: {secretAccessKey: \"\"}\n" +
		"names:\n  # Name of the key in the Secret\n  password: password\nusers: [{password: x}]\n"
	root := learnText(t, text)
	paths := Secrets(root)
	check.Equal(t, []string{"adminPassword", "apiKey", "auth.existingSecret", "auth.password", "s3.existingSecretName", "db.secretAccessKey"}, paths)
	Refer(root, append(paths, "port", "gone"))
	var types []string
	for _, line := range outline(root, "") {
		if strings.Contains(line, " SecretKey ") || strings.Contains(line, " SecretName ") {
			types = append(types, line)
		}
	}
	check.Equal(t, []string{"adminPassword SecretKey Value default=x", "apiKey SecretKey Value default=", "auth.existingSecret SecretName Value default=", "auth.password SecretKey Value default=",
		"s3.existingSecretName SecretName Value default=x", "db.secretAccessKey SecretKey Value default="}, types)
}
