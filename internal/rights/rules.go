// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Right is the right to one verb on one resource. An empty namespace means all of them;
// an empty name means any object.
type Right struct{ Group, Resource, Namespace, Verb, Name string }

// Missing are the rights that a user lacks, in the form in which they are granted.
type Missing []Scope

// Scope are the rules for a Role of one namespace, or for a ClusterRole if it is empty.
type Scope struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Aggregate returns the rules that grant the rights: one rule for all resources of a
// group that need the same verbs.
func Aggregate(rights []Right) Missing {
	type object struct{ namespace, group, resource, name string }
	verbs := map[object][]string{}
	for _, r := range rights {
		key := object{r.Namespace, r.Group, r.Resource, r.Name}
		verbs[key] = append(verbs[key], r.Verb)
	}
	type rule struct{ namespace, group, name, verbs string }
	resources := map[rule][]string{}
	for key, set := range verbs {
		slices.SortFunc(set, byUse)
		r := rule{key.namespace, key.group, key.name, strings.Join(slices.Compact(set), " ")}
		resources[r] = append(resources[r], key.resource)
	}
	scopes := map[string][]rbacv1.PolicyRule{}
	for r, set := range resources {
		slices.Sort(set)
		granted := rbacv1.PolicyRule{APIGroups: []string{r.group}, Resources: set, Verbs: strings.Fields(r.verbs)}
		if r.name != "" {
			granted.ResourceNames = []string{r.name}
		}
		scopes[r.namespace] = append(scopes[r.namespace], granted)
	}
	var missing Missing
	for _, namespace := range slices.Sorted(maps.Keys(scopes)) {
		rules := scopes[namespace]
		slices.SortFunc(rules, func(a, b rbacv1.PolicyRule) int { return cmp.Compare(ruleText(a), ruleText(b)) })
		missing = append(missing, Scope{namespace, joinNames(rules)})
	}
	return missing
}

// joinNames makes one rule of rules that differ in the names of objects only.
func joinNames(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var joined []rbacv1.PolicyRule
	for _, r := range rules {
		same := slices.IndexFunc(joined, func(other rbacv1.PolicyRule) bool {
			return len(r.ResourceNames) > 0 && len(other.ResourceNames) > 0 && slices.Equal(r.APIGroups, other.APIGroups) &&
				slices.Equal(r.Resources, other.Resources) && slices.Equal(r.Verbs, other.Verbs)
		})
		if same < 0 {
			joined = append(joined, r)
			continue
		}
		joined[same].ResourceNames = append(joined[same].ResourceNames, r.ResourceNames...)
	}
	return joined
}

// usual is the order in which verbs are written.
var usual = []string{"get", "list", "watch", "create", "update", "patch", "delete", "escalate", "bind"}

func byUse(a, b string) int {
	return cmp.Or(cmp.Compare(slices.Index(usual, a), slices.Index(usual, b)), cmp.Compare(a, b))
}

// String returns the rules as YAML in one line for each scope, to be pasted into a Role or a
// ClusterRole; empty if nothing is missing.
func (m Missing) String() string {
	scopes := make([]string, 0, len(m))
	for _, scope := range m {
		rules := make([]string, 0, len(scope.Rules))
		for _, rule := range scope.Rules {
			rules = append(rules, ruleText(rule))
		}
		where := "in the cluster"
		if scope.Namespace != "" {
			where = "in namespace " + scope.Namespace
		}
		scopes = append(scopes, where+" rules: ["+strings.Join(rules, ", ")+"]")
	}
	return strings.Join(scopes, "; ")
}

// Count returns the number of rules.
func (m Missing) Count() (n int) {
	for _, scope := range m {
		n += len(scope.Rules)
	}
	return n
}

func ruleText(rule rbacv1.PolicyRule) string {
	text := fmt.Sprintf("{apiGroups: %s, resources: %s, ", list(rule.APIGroups), list(rule.Resources))
	if len(rule.ResourceNames) > 0 {
		text += fmt.Sprintf("resourceNames: %s, ", list(rule.ResourceNames))
	}
	return text + "verbs: " + list(rule.Verbs) + "}"
}

// plain are the scalars that YAML reads as text without quotes.
var plain = regexp.MustCompile("^[a-z][a-z0-9./-]*$")

// words are scalars that YAML reads as something else than text.
var words = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

func list(values []string) string {
	quoted := make([]string, 0, len(values))
	for _, value := range values {
		if !plain.MatchString(value) || slices.Contains(words, value) {
			value = quote(value)
		}
		quoted = append(quoted, value)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// quote quotes a scalar so that a line of a log in JSON holds it as it is: such a line escapes
// double quotes, and `\"\"` is the name of no group. Only double quotes can hold characters that
// are not printable.
func quote(value string) string {
	if strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(value)
	}
	return "'" + strings.ReplaceAll(value, "'", "''") + "'"
}
