// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// groups are the groups of the kinds that occur in the tests.
var groups = map[string]string{
	"ConfigMap": "", "Secret": "", "Service": "", "ServiceAccount": "", "Namespace": "",
	"Deployment": "apps", "Job": "batch", "ClusterRole": "rbac.authorization.k8s.io",
	"CustomResourceDefinition":       "apiextensions.k8s.io",
	"APIService":                     "apiregistration.k8s.io",
	"ValidatingWebhookConfiguration": "admissionregistration.k8s.io",
	"Foo":                            "example.com", "Bar": "example.com",
}

// keyOf makes a key of a kind and "name" or "namespace/name".
func keyOf(kind, name string) (Key, error) {
	group, known := groups[kind]
	if !known {
		return Key{}, fmt.Errorf("unknown kind %s", kind)
	}
	key := Key{Group: group, Kind: kind, Name: name}
	if namespace, rest, namespaced := strings.Cut(name, "/"); namespaced {
		key.Namespace, key.Name = namespace, rest
	}
	return key, nil
}

// line names an object and says something about it.
type line struct {
	key   Key
	words map[string]string
}

func (l line) value(name string) string { return l.words[name] }

// parseLines reads lines such as "Deployment shop/api value=1 apply-order=2".
func parseLines(text string) ([]line, error) {
	var lines []line
	for row := range strings.Lines(text) {
		fields := strings.Fields(row)
		if len(fields) == 0 {
			continue
		}
		if len(fields) == 1 {
			return nil, fmt.Errorf("%q is not a kind, a name and options", row)
		}
		key, err := keyOf(fields[0], fields[1])
		if err != nil {
			return nil, err
		}
		l := line{key: key, words: map[string]string{}}
		for _, field := range fields[2:] {
			name, value, assigned := strings.Cut(field, "=")
			if !assigned {
				return nil, fmt.Errorf("%q is not an option", field)
			}
			l.words[name] = value
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// desired makes a desired object of a line. The options are annotations, but for
// value, ttl, which says that the object is removed after its end, and defines, which
// names the kind that a definition brings.
func (l line) desired() (Desired, error) {
	annotations := map[string]string{}
	for name, value := range l.words {
		if name != "value" && name != "defines" && name != "ttl" && name != "hook" {
			annotations[reconcilerName+"/"+name] = value
		}
	}
	policies, err := policy.Parse(reconcilerName, annotations, defaultPolicies())
	if err != nil {
		return Desired{}, fmt.Errorf("%s: %w", l.key, err)
	}
	d := desiredObject(l.key, l.value("value"), policies, l.defines()...)
	d.HasTTL = l.value("ttl") != ""
	d.Hook = l.value("hook")
	return d, nil
}

func (l line) defines() []v1alpha1.TypeInfo {
	kind, defines := l.words["defines"]
	if !defines {
		return nil
	}
	return []v1alpha1.TypeInfo{{Group: "example.com", Kind: kind}}
}

// objects shows what exists: the value, what others added, its true owner and what it shows.
func objects(s *story, _ []string, _ []line) (string, error) {
	var b strings.Builder
	for _, key := range s.world.keys() {
		o := s.world.objects[key]
		if key == namespaceKey("shop") {
			continue
		}
		fmt.Fprintf(&b, "%s %s", key, o.uid)
		for _, word := range []struct{ name, text string }{{"value", o.value}, {"extra", o.extra}, {"owner", o.ownership.OwnerID}, {"others", strings.Join(o.ownership.OtherOwners, ",")}} {
			if word.text != "" {
				fmt.Fprintf(&b, " %s=%s", word.name, word.text)
			}
		}
		if !o.deleting.IsZero() {
			b.WriteString(" terminating")
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "none\n", nil
	}
	return b.String(), nil
}
