// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/check"
)

// A field that a later client-go adds is decided about: this test names it.
func TestEveryFieldIsAllowedOrForbidden(t *testing.T) {
	var fields []string
	for _, typ := range []reflect.Type{reflect.TypeFor[clientcmdv1.Cluster](), reflect.TypeFor[clientcmdv1.AuthInfo]()} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	decided := slices.Sorted(slices.Values(slices.Concat(allowedFields, slices.Collect(maps.Keys(forbiddenFields)))))
	if diff := cmp.Diff(slices.Compact(fields), decided); diff != "" {
		t.Errorf("(-fields of client-go +decided):\n%s", diff)
	}
}

func TestAnUnknownFieldIsForbidden(t *testing.T) {
	var v validation
	v.fields("users[0].user", reflect.ValueOf(struct {
		Token  string `json:"token"`
		Plugin string `json:"plugin,omitempty"`
		Unset  *int   `json:"unset"`
	}{Token: "x", Plugin: "x"}))
	want := []Problem{{Reason: vocabulary.ReasonKubeconfigForbiddenField, Path: "users[0].user.plugin", Text: "is not allowed, because the operator does not know its meaning"}}
	check.Equal(t, want, v.problems)
}
