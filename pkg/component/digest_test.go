// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hash "github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestDigest(t *testing.T) {
	key, generator := "key", ""
	digest := func(t *testing.T, change func(*widget)) string {
		t.Helper()
		obj := newWidget()
		obj.Annotations = map[string]string{"a": "1"}
		obj.Spec.Refs = &widgetReferences{Password: &SecretKeyReference{Name: "creds"}, Own: &ownReference{}}
		change(obj)
		references, _ := finderFor[*widget]().find(obj.GetSpec())
		text, err := digestOf(obj, references, generator, hash.Hasher{Key: []byte(key)})
		if err != nil || text == "" {
			t.Fatalf("digest %q, error %v", text, err)
		}
		return text
	}
	before := digest(t, func(*widget) {})
	tests := []struct {
		name   string
		change func(*widget)
		same   bool
	}{
		{"nothing changed", func(*widget) {}, true},
		{"the status", func(w *widget) { w.Status.Note, w.Status.Revision = "x", 7 }, true},
		{"what kubectl notes", func(w *widget) { w.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}" }, true},
		{"labels, finalizers, resourceVersion", func(w *widget) {
			w.Labels, w.Finalizers, w.ResourceVersion = map[string]string{"a": "b"}, []string{"x"}, "9"
		}, true},
		{"an annotation", func(w *widget) { w.Annotations["a"] = "2" }, false},
		{"the generation", func(w *widget) { w.Generation = 2 }, false},
		{"the spec", func(w *widget) { w.Spec.Size = 3 }, false},
		{"what a reference of the package loaded", func(w *widget) { w.Spec.Refs.Password.value = []byte("2") }, false},
		{"that what is referred to is empty", func(w *widget) { w.Spec.Refs.Password.value = []byte{} }, false},
		{"what a reference of the author loaded", func(w *widget) { w.Spec.Refs.Own.loaded = "2" }, false},
		{"what the generator renders from", func(*widget) { generator = "another" }, false},
		{"the key", func(*widget) { key = "another" }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			generator = ""
			if same := digest(t, test.change) == before; same != test.same {
				t.Errorf("the digest is the same: %v, want %v", same, test.same)
			}
		})
	}
}

func TestDigestOfWhatIsNoJSONIsAnError(t *testing.T) {
	obj := &specless{widget: *newWidget(), spec: types.UnstructurableMap{"f": func() {}}}
	if _, err := digestOf(obj, nil, "", hash.Hasher{}); err == nil {
		t.Error("no error")
	}
}

func TestProcessing(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 999) }
	since := func(t *testing.T, s *Status, want *time.Time) {
		t.Helper()
		switch {
		case want == nil && s.ProcessingSince != nil:
			t.Errorf("processing since %s", s.ProcessingSince)
		case want != nil && (s.ProcessingSince == nil || s.ProcessingSince.Unix() != want.Unix()):
			t.Errorf("processing since %v, want %s", s.ProcessingSince, want)
		}
	}
	s := &Status{}
	if !s.beginProcessing("c1", at(0)) || s.Revision != 1 {
		t.Errorf("a new component is not revision 1 but %d", s.Revision)
	}
	s.noteManifests("m1", at(1))
	since(t, s, new(at(0)))
	if s.beginProcessing("c1", at(2)) || s.Revision != 1 {
		t.Error("the same component is a new revision")
	}
	s.noteManifests("m2", at(3))
	since(t, s, new(at(3)))
	s.noteManifests("m2", at(4))
	s.noteManifests("", at(4))
	s.noteWaiting(at(5))
	since(t, s, new(at(3)))
	if s.timedOut(10*time.Second, at(12)) || !s.timedOut(10*time.Second, at(13)) {
		t.Error("the timeout does not count from the last change")
	}
	s.noteApplied(4, true, at(20))
	since(t, s, nil)
	if s.timedOut(time.Second, at(1000)) {
		t.Error("a settled component times out")
	}
	s.noteApplied(4, false, at(30))
	if s.LastAppliedAt.Unix() != at(20).Unix() || s.AppliedGeneration != 4 {
		t.Error("a pass that wrote nothing changes the status")
	}
	s.noteWaiting(at(40))
	since(t, s, new(at(40)))
	if !s.beginProcessing("c2", at(50)) || s.Revision != 2 || s.ProcessingDigest != "c2/" {
		t.Errorf("revision %d, digest %q", s.Revision, s.ProcessingDigest)
	}
	since(t, s, new(at(50)))
	s.ProcessingSince = new(metav1.NewTime(at(100000)))
	s.noteWaiting(at(60))
	since(t, s, new(at(60)))
	if s.ProcessingSince.Nanosecond() != 0 {
		t.Error("the time has a fraction that its serialised form has not")
	}
}
