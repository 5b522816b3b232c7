// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// failure executes a step that has to fail.
func (b *bench) failure(s plan.Step) *execute.Error {
	b.t.Helper()
	result := b.run(s)
	failure, ok := errors.AsType[*execute.Error](result.Err)
	if !ok {
		b.t.Fatalf("%s %s: got %+v", s.Verb, s.Key, result)
	}
	if text := failure.Error(); len(text) > 500 || strings.Contains(text, "\n") || !strings.HasPrefix(text, string(s.Verb)+" "+s.Key.String()+": ") {
		b.t.Errorf("the error is not a sentence about the object: %q", text)
	}
	return failure
}

func TestAnImmutableFieldIsNamed(t *testing.T) {
	b := newBench(t)
	namespace := b.namespace()
	replace := strings.NewReplacer
	for name, tc := range map[string]struct {
		manifest, change string
		field            string
	}{
		"selector of a Deployment": {workload(namespace, "selector", "", ""), "a: b->a: c", "spec.selector"},
		"template of a Job": {
			`{apiVersion: batch/v1, kind: Job, metadata: {name: job, namespace: ` + namespace + `}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`,
			"image: i->image: j", "spec.template",
		},
		"role of a RoleBinding": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: binding, namespace: ` + namespace + `}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}}`,
			"name: a}->name: b}", "roleRef",
		},
		"address of a Service": {
			`{apiVersion: v1, kind: Service, metadata: {name: service, namespace: ` + namespace + `}, spec: {ports: [{port: 80}]}}`,
			"spec: {->spec: {clusterIP: 10.0.0.77, ", "spec.clusterIPs[0]",
		},
		"class of a claim": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim, namespace: ` + namespace + `}, spec: {storageClassName: a, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
			"storageClassName: a->storageClassName: b", "spec",
		},
		"environment of a pod": {
			`{apiVersion: v1, kind: Pod, metadata: {name: pod, namespace: ` + namespace + `}, spec: {containers: [{name: c, image: i, env: [{name: A, value: b}]}]}}`,
			"value: b->value: c", "spec",
		},
		"name of a StatefulSet's service": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: set, namespace: ` + namespace + `}, spec: {serviceName: a, selector: {matchLabels: {x: y-z}}, template: {metadata: {labels: {x: y-z}}, spec: {containers: [{name: c, image: i}]}}}}`,
			"serviceName: a->serviceName: b", "spec.serviceName",
		},
		"content of an immutable ConfigMap": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed, namespace: ` + namespace + `}, immutable: true, data: {a: b}}`,
			"a: b->a: c", "data",
		},
		"content of an immutable Secret": {
			`{apiVersion: v1, kind: Secret, metadata: {name: fixed, namespace: ` + namespace + `}, immutable: true, data: {a: Yg==}}`,
			"a: Yg==->a: Yw==", "data",
		},
	} {
		for _, verb := range []plan.Verb{plan.VerbReplace, plan.VerbMerge} {
			manifest := replace("metadata: {name: ", "metadata: {name: "+string(verb)+"-").Replace(tc.manifest)
			before, after, _ := strings.Cut(tc.change, "->")
			d := b.desired(manifest, writes[verb])
			b.must(step(plan.VerbCreate, d, plan.Observation{}))
			changed := b.desired(strings.ReplaceAll(manifest, before, after), writes[verb])
			failure := b.failure(step(verb, changed, b.observe(d)))
			if failure.Class != execute.Immutable || !slices.Contains(failure.Fields, tc.field) {
				t.Errorf("%s, %s: got %s %v: %v", name, verb, failure.Class, failure.Fields, failure)
			}
			if text := failure.Error(); !strings.Contains(text, tc.field) || !strings.Contains(text, "annotation "+reconciler+"/update-policy: recreate") {
				t.Errorf("%s, %s: got %q", name, verb, text)
			}
			if text := failure.Error(); strings.Contains(text, "anew, without its data") != (name == "class of a claim") {
				t.Errorf("%s, %s: got %q", name, verb, text)
			}
			adoption := step(verb, changed, b.observe(d))
			adoption.Reason = plan.ReasonAdopted
			if text := b.failure(adoption).Error(); strings.Contains(text, "update-policy") ||
				!strings.Contains(text, "no policy deletes what is not ours: delete it yourself, or give the dependent object another name") {
				t.Errorf("%s, %s of another client: got %q", name, verb, text)
			}
		}
	}
}

func TestAMissingNamespaceIsNoConflict(t *testing.T) {
	b := newBench(t)
	failure := b.failure(step(plan.VerbCreate, b.desired(configMap("nowhere", "nowhere"), v1alpha1.UpdatePolicyReplace), plan.Observation{}))
	if failure.Class != execute.NamespaceGone || !strings.Contains(failure.Error(), `namespaces "nowhere" not found`) {
		t.Errorf("got %s: %v", failure.Class, failure)
	}
}

// TestRefusalsSayWhatIsWrongAndWhatToDo: what is said of a Secret names its keys, the
// reason and the webhook that refused it, but repeats no value.
func TestRefusalsSayWhatIsWrongAndWhatToDo(t *testing.T) {
	const invalid = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"%[3]s \"s\" is invalid: %[2]s: %[1]s","details":{"name":"s","kind":"%[3]s","causes":[{"reason":"FieldValueInvalid","message":"%[1]s","field":"%[2]s"}]}}`
	forbidden := func(message string) string { return status("Forbidden", 403, `secrets \"s\" is forbidden: `+message) }
	for name, tc := range map[string]struct {
		kind string
		code int
		body string
		want string
	}{
		"a key that is not allowed": {"Secret", 422, fmt.Sprintf(invalid, `Invalid value: \"hunter2\": a valid config key must consist of alphanumeric characters`, "data[a/b]", "Secret"),
			`the server refused it (Invalid, 422): data[...]: Invalid value`},
		"a value that is not quoted": {"Secret", 422, fmt.Sprintf(invalid, `Invalid value: map[a:hunter2]: no`, "data", "Secret"),
			"the server refused it (Invalid, 422): data: Invalid value"},
		"a value of an object that is no Secret": {"ConfigMap", 422, fmt.Sprintf(invalid, `Invalid value: \"a/b\": no valid key`, "data[a/b]", "ConfigMap"),
			`ConfigMap "s" is invalid: data[a/b]: Invalid value: "a/b": no valid key`},
		"a right that is missing": {"Secret", 403, forbidden(`User \"system:serviceaccount:shop:op\" cannot create resource \"secrets\" in API group \"\" in the namespace \"default\"`),
			`the server refused it (Forbidden, 403): secrets "s" is forbidden: User "system:serviceaccount:shop:op" cannot create resource "secrets" in API group "" in the namespace "default"`},
		"a quota": {"Secret", 403, forbidden("exceeded quota: few, requested: secrets=1, used: secrets=1, limited: secrets=1"),
			`the server refused it (Forbidden, 403): secrets "s" is forbidden: exceeded quota: few`},
		"a webhook": {"Secret", 403, status("Forbidden", 403, `admission webhook \"a.example.com\" denied the request: hunter2`),
			`the server refused it (Forbidden, 403): admission webhook "a.example.com" denied the request`},
		"a policy": {"Secret", 422, status("Invalid", 422, `secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: hunter2`),
			`the server refused it (Invalid, 422): secrets "s" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request`},
		"no reason": {"Secret", 400, status("", 400, `illegal base64 data in \"hunter2`),
			`the server refused it (400 Bad Request)`},
		"no message": {"ConfigMap", 400, status("", 400, ""), "the server gave no reason (400 Bad Request)"},
		"a value of the wrong type": {"Secret", 500, status("InternalError", 500, `.data.k: expected string, got &value.valueUnstructured{Value:hunter2}`),
			`the server refused it (InternalError, 500)`},
		"an object that is too large": {"ConfigMap", 500, status("", 500, "etcdserver: request is too large"),
			"the object is too large (its manifest has 0 KiB): the storage of a cluster takes 1.5 MiB by default; move content of it to other objects (etcdserver: request is too large)"},
		"a Secret that is too large": {"Secret", 413, status("RequestEntityTooLarge", 413, "Request entity too large: limit is 3145728"),
			"the object is too large (its manifest has 0 KiB): the storage of a cluster takes 1.5 MiB by default; move content of it to other objects (the server refused it (RequestEntityTooLarge, 413))"},
		"a storage that is full": {"ConfigMap", 500, status("", 500, "etcdserver: mvcc: database space exceeded"),
			"the storage of the cluster is full; an administrator has to free space in etcd or raise its quota (etcdserver: mvcc: database space exceeded)"},
		"a storage that does not answer": {"ConfigMap", 500, status("", 500, "etcdserver: request timed out"),
			"the storage of the cluster did not accept it, and it is tried again (etcdserver: request timed out)"},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			recorder.Answer = func(wire.Sent) (int, any) { return tc.code, json.RawMessage(tc.body) }
			b := benchOn(t, recorder.Config())
			object := b.desired(`{apiVersion: v1, kind: `+tc.kind+`, metadata: {name: s, namespace: default}, data: {k: aHVudGVyMg==}}`, v1alpha1.UpdatePolicyReplace)
			failure := b.failure(step(plan.VerbCreate, object, plan.Observation{}))
			check.Equal(t, "create "+tc.kind+" default/s: "+tc.want, failure.Error())
		})
	}
}

func status(reason string, code int, message string) string {
	return `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"` + reason + `","code":` + strconv.Itoa(code) + `,"message":"` + message + `"}`
}

func TestARefusalSaysThatAValueIsAlreadyAllocated(t *testing.T) {
	const port = "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated"
	for name, tc := range map[string]struct {
		verb    plan.Verb
		class   execute.Class
		message string
		want    bool
	}{
		"a port":                 {plan.VerbCreate, execute.Invalid, port, true},
		"a quota":                {plan.VerbCreate, execute.Forbidden, "exceeded quota: ports, requested: services.nodeports=1", true},
		"a host, by a webhook":   {plan.VerbCreate, execute.Denied, "denied the request: host is Already defined in ingress", true},
		"another denial":         {plan.VerbCreate, execute.Denied, "denied the request: no owner label", false},
		"a right that is missed": {plan.VerbCreate, execute.Forbidden, "User may not create services", false},
		"the object itself":      {plan.VerbCreate, execute.Conflict, "already exists", false},
		"a failing server":       {plan.VerbCreate, execute.Failed, "already allocated, or perhaps not", false},
		"a change":               {plan.VerbReplace, execute.Invalid, port, false},
		"a dry run":              {plan.VerbDryRun, execute.Invalid, port, true},
	} {
		status := &apierrors.StatusError{ErrStatus: metav1.Status{Message: tc.message}}
		check.SameNamed(t, name, tc.want, execute.IsAllocationConflict(&execute.Error{Verb: tc.verb, Class: tc.class, Err: status}))
	}
	if execute.IsAllocationConflict(errors.New("already")) || execute.IsAllocationConflict(&execute.Error{Verb: plan.VerbCreate, Class: execute.Invalid, Err: errors.New("already")}) {
		t.Error("an error that is no answer of the server counts")
	}
}

// What the server says to a dry run decides whether an object is deleted to be
// created again.
func TestTheAnswerToADryRunDecidesAboutARecreation(t *testing.T) {
	for name, tc := range map[string]struct {
		code    int
		reason  metav1.StatusReason
		message string
		fails   string // what the error says; empty if the object may be recreated
		class   execute.Class
		note    string
	}{
		"it may be created":          {code: 201},
		"nothing but the name":       {code: 409, reason: "AlreadyExists", message: `configmaps "a" already exists`},
		"invalid":                    {code: 422, reason: "Invalid", message: "data[a b]: a valid config key", fails: "the live object stays, because the server refuses the new one", class: execute.Invalid},
		"immutable is no reason":     {code: 422, reason: "Invalid", message: "spec is immutable", fails: "the live object stays", class: execute.Invalid},
		"not allowed":                {code: 403, reason: "Forbidden", message: "cannot create resource", fails: "the live object stays", class: execute.Forbidden},
		"a webhook":                  {code: 400, reason: "BadRequest", message: `admission webhook "x" denied the request: no`, fails: "the live object stays", class: execute.Denied},
		"a quota":                    {code: 403, reason: "Forbidden", message: "exceeded quota: q, requested: count/configmaps=1", fails: "the quota counts it and the new object together", class: execute.Forbidden},
		"a conflict":                 {code: 409, reason: "Conflict", message: "on resourcequotas", fails: "the live object stays", class: execute.Conflict},
		"the server is busy":         {code: 503, reason: "ServiceUnavailable", message: "later", fails: "the live object stays", class: execute.Failed},
		"a webhook without dry runs": {code: 400, reason: "BadRequest", message: `admission webhook "old" does not support dry run`, note: `admission webhook "old" does not support dry run`},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			recorder.Answer = func(sent wire.Sent) (int, any) {
				if sent.Method != http.MethodPost || sent.Query.Get("dryRun") != "All" {
					t.Errorf("sent %s with %v", sent, sent.Query)
				}
				if tc.code == http.StatusCreated {
					return 0, nil
				}
				refusal := wire.Failure(tc.code, tc.reason, &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "f", Message: tc.message}}})
				refusal.Message = tc.message
				return tc.code, refusal
			}
			b := benchOn(t, recorder.Config())
			d := b.desired(configMap("shop", "a"), v1alpha1.UpdatePolicyRecreate)
			s := step(plan.VerbDryRun, d, plan.Observation{Existence: plan.Present, UID: "u", ResourceVersion: "1"})
			result := b.run(s)
			if (result.Err != nil) != (tc.fails != "") {
				t.Fatalf("got %v", result.Err)
			}
			if err, ok := result.Err.(*execute.Error); ok && (err.Class != tc.class || !strings.Contains(err.Error(), tc.fails) || !strings.Contains(err.Error(), tc.message)) {
				t.Errorf("got %s %v", err.Class, err)
			}
			if said := fmt.Sprint(result.Notes); (len(result.Notes) > 0) != (tc.note != "") || !strings.Contains(said, tc.note) {
				t.Errorf("noted %s", said)
			}
		})
	}
}

func TestARecreationOrphansDependentsIfItsPropagationSaysSo(t *testing.T) {
	for _, tc := range []struct {
		because     plan.Reason
		propagation policy.Propagation
		want        string
	}{
		{plan.ReasonRecreate, "", "Background"},
		{plan.ReasonRecreate, policy.PropagationBackground, "Background"},
		{plan.ReasonRecreate, policy.PropagationOrphan, "Orphan"},
		{plan.ReasonPurged, policy.PropagationOrphan, "Background"},
	} {
		b, recorder, d, live := recorded(t, configMap("shop", "a"))
		d.Policies.RecreatePropagation = tc.propagation
		s := step(plan.VerbDelete, d, live)
		s.Reason = tc.because
		b.must(s)
		check.SameNamed(t, string(tc.because)+", "+string(tc.propagation)+": sent", tc.want, recorder.Writes()[0].Field("propagationPolicy"))
	}
}
