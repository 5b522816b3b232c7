// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/test/check"
)

func storeOn(c client.Client, key string) *Store {
	return NewStore(Options{
		Client: c, Name: "test.corbel.run", FieldOwner: "test", Namespace: "operator",
		Key: func(context.Context) ([]byte, error) { return []byte(key), nil },
	})
}

var component = Component{
	GroupVersionKind: schema.GroupVersionKind{Group: "test.corbel.run", Version: "v1", Kind: "Widget"},
	Namespace:        "shop", Name: "main", UID: "1-2-3",
}

func saved(t *testing.T, s *Store, c Component, revision Revision, content string) *Record {
	t.Helper()
	record := check.Must(s.Read(t.Context(), c))(t)
	check.NoError(t, record.Save(t.Context(), Update{Revision: revision, Content: []byte(content)}))
	return record
}

func contentOf(t *testing.T, s *Store, c Component, revision Revision) (string, error) {
	t.Helper()
	record := check.Must(s.Read(t.Context(), c))(t)
	content, err := record.Content(t.Context(), revision)
	return string(content), err
}

func secretOf(t *testing.T, s *Store, c Component) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	check.NoError(t, s.options.Client.Get(t.Context(), s.KeyOf(c), secret))
	return secret
}

func TestContentIsReadAsItWasWritten(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	record := saved(t, s, component, Revision{1, "a"}, "first")
	for _, revision := range []Revision{{2, "b"}, {3, "c"}, {3, "d"}} {
		check.NoError(t, record.Save(t.Context(), Update{Revision: revision, Content: []byte("content of " + revision.Digest)}))
	}
	for _, revision := range []Revision{{2, "b"}, {3, "d"}} {
		check.Same(t, "content of "+revision.Digest, check.Must(contentOf(t, s, component, revision))(t))
	}
	secret := secretOf(t, s, component)
	if owner := secret.OwnerReferences[0]; len(secret.Data) != 2 || secret.Namespace != "shop" || owner.UID != component.UID || owner.APIVersion != "test.corbel.run/v1" {
		t.Errorf("%d entries, %+v", len(secret.Data), secret.ObjectMeta)
	}
	clusterScoped := component
	clusterScoped.Namespace = ""
	saved(t, s, clusterScoped, Revision{1, "a"}, "first")
	if secret := secretOf(t, s, clusterScoped); secret.Namespace != "operator" {
		t.Errorf("the Secret is in namespace %s", secret.Namespace)
	}
}

func TestContentOpensOnlyAsWhatItWasWrittenFor(t *testing.T) {
	other := component
	other.UID = "4-5-6"
	revision, password := Revision{1, "a"}, strings.Repeat("password", 100)
	for _, test := range []struct {
		name   string
		change func(t *testing.T, s *Store, secret *corev1.Secret)
		key    string
		want   string
	}{
		{name: "a changed byte", want: "it does not open", change: func(_ *testing.T, _ *Store, secret *corev1.Secret) { secret.Data["r1"][40] ^= 1 }},
		{name: "nothing in it", want: "it does not open", change: func(_ *testing.T, _ *Store, secret *corev1.Secret) { secret.Data["r1"] = []byte("short") }},
		{name: "no entry", want: "it holds nothing of revision 1", change: func(_ *testing.T, _ *Store, secret *corev1.Secret) { secret.Data = nil }},
		{name: "another key", key: "other", want: "it does not open", change: func(*testing.T, *Store, *corev1.Secret) {}},
		{name: "that of another component", want: "it does not open", change: func(t *testing.T, s *Store, secret *corev1.Secret) {
			saved(t, s, other, revision, password)
			secret.Data = secretOf(t, s, other).Data
		}},
		{name: "that of another revision", want: "it does not open", change: func(t *testing.T, s *Store, secret *corev1.Secret) {
			saved(t, s, component, Revision{2, "a"}, password)
			secret.ResourceVersion, secret.Data["r1"] = "", secretOf(t, s, component).Data["r2"]
		}},
		{name: "that of another digest", want: "it does not open", change: func(t *testing.T, s *Store, secret *corev1.Secret) {
			saved(t, s, component, Revision{1, "b"}, password)
			secret.ResourceVersion, secret.Data = "", secretOf(t, s, component).Data
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := fake.NewClientBuilder().Build()
			s := storeOn(c, "key")
			saved(t, s, component, revision, password)
			secret := secretOf(t, s, component)
			stored := secret.Data["r1"]
			for at := range stored { // what is sealed is compressed
				if reader, err := gzip.NewReader(bytes.NewReader(stored[at:])); err == nil {
					text, _ := io.ReadAll(reader)
					stored = append(stored, text...)
				}
			}
			if bytes.Contains(stored, []byte("password")) {
				t.Error("the content can be read")
			}
			test.change(t, s, secret)
			check.NoError(t, c.Update(t.Context(), secret))
			if test.key != "" {
				s = storeOn(c, test.key)
			}
			content, err := contentOf(t, s, component, revision)
			if _, lost := errors.AsType[*LostError](err); !lost || content != "" || !strings.Contains(err.Error(), test.want) ||
				!strings.HasPrefix(err.Error(), "Secret shop/main-revisions-") {
				t.Errorf("%q, %v; want %q", content, err, test.want)
			}
		})
	}
}

func TestAWriteThatAnotherClientCameBeforeFails(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	missing := check.Must(s.Read(t.Context(), component))(t)
	ours := saved(t, s, component, Revision{1, "a"}, "ours")
	saved(t, s, component, Revision{1, "a"}, "theirs")
	if err := ours.Save(t.Context(), Update{Revision: Revision{1, "a"}, Content: []byte("ours again")}); !apierrors.IsConflict(err) {
		t.Errorf("over another version: %v", err)
	}
	if err := missing.Save(t.Context(), Update{Revision: Revision{1, "a"}, Content: []byte("ours again")}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("over one that did not exist: %v", err)
	}
	check.Same(t, "theirs", check.Must(contentOf(t, s, component, Revision{1, "a"}))(t))
}

func TestContentThatFitsNoSecretIsRefused(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	record := check.Must(s.Read(t.Context(), component))(t)
	random := make([]byte, 1<<20)
	rand.Read(random)
	for _, content := range [][]byte{random, make([]byte, maxOpened+1)} {
		err := record.Save(t.Context(), Update{Revision: Revision{1, "a"}, Content: content})
		if _, tooLarge := errors.AsType[*TooLargeError](err); !tooLarge || !strings.Contains(err.Error(), "can be kept") {
			t.Error(err)
		}
	}
}

// setWith returns a set with one object of each text.
func setWith(revision int64, texts ...string) Set {
	set := Set{Revision: revision, Digest: fmt.Sprint("digest ", revision), Namespace: "shop"}
	for _, text := range texts {
		set.Objects = append(set.Objects, json.RawMessage(fmt.Sprintf("{%q:%q}", "text", text)))
	}
	return set
}

func keepSet(t *testing.T, r *Record, set Set, retention Retention) {
	t.Helper()
	check.NoError(t, r.Save(t.Context(), Update{Revision: Revision{set.Revision, "a"}, Set: &set, Retention: retention}))
}

// numbers returns the revisions of the sets that are kept, as another process reads them.
func numbers(t *testing.T, s *Store) string {
	t.Helper()
	record := check.Must(s.Read(t.Context(), component))(t)
	sets := check.Must(record.Sets(t.Context()))(t)
	var found []string
	for _, set := range sets {
		found = append(found, fmt.Sprint(set.Revision))
	}
	return strings.Join(found, " ")
}

func TestTheHistoryHasTheLastSetsAndTheLastThatWasReady(t *testing.T) {
	many := strings.Repeat("x", 1000)
	for _, test := range []struct {
		name      string
		retention Retention
		revisions []int64
		want      string
	}{
		{"fewer than the limit", Retention{Limit: 3}, []int64{1, 2}, "2 1"},
		{"more than the limit", Retention{Limit: 3}, []int64{1, 2, 3, 4, 5}, "5 4 3"},
		{"the last one that was ready", Retention{Limit: 2, LastReady: 1}, []int64{1, 2, 3, 4}, "4 3 1"},
		{"the same again", Retention{Limit: 3}, []int64{1, 2, 2}, "2 1"},
		{"counted anew", Retention{Limit: 5}, []int64{1, 2, 3, 4, 2}, "2 4 3 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := storeOn(fake.NewClientBuilder().Build(), "key")
			record := s.Assume(component)
			for _, revision := range test.revisions {
				keepSet(t, record, setWith(revision, "common", many+fmt.Sprint(revision)), test.retention)
			}
			check.Same(t, test.want, numbers(t, s))
		})
	}
}

func TestAProcessThatWasDeposedRemovesNoSetOfAnother(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	stale, record := s.Assume(component), s.Assume(component)
	for _, revision := range []int64{1, 2} {
		keepSet(t, record, setWith(revision, "a"), Retention{Limit: 2})
	}
	other := setWith(1, "rendered from another spec")
	for _, digest := range []string{"another digest", "and again", "and once more"} {
		other.Digest = digest
		keepSet(t, stale, other, Retention{Limit: 2})
	}
	check.SameNamed(t, "sets of", "1 1 2", numbers(t, s))
}

func TestSetsAreReadAsTheyWereWritten(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	record := s.Assume(component)
	first, second := setWith(1, "b", "a", "only in the first"), setWith(2, "a", "b", "only in the second")
	keepSet(t, record, first, Retention{Limit: 10})
	keepSet(t, record, second, Retention{Limit: 10})
	read := check.Must(s.Read(t.Context(), component))(t)
	sets := check.Must(read.Sets(t.Context()))(t)
	check.Equal(t, []Set{second, first}, sets)
	encoded, err := encodeHistory(sets)
	if err != nil || bytes.Count(encoded, []byte(`"text":"a"`)) != 1 {
		t.Errorf("%v; an object of both sets is kept more than once: %s", err, encoded)
	}
}

func TestContentAndSetsDoNotHarmEachOther(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	saved(t, s, component, Revision{1, "a"}, "values")
	record := check.Must(s.Read(t.Context(), component))(t)
	keepSet(t, record, setWith(1, "a"), Retention{Limit: 10})
	check.Same(t, "values", check.Must(contentOf(t, s, component, Revision{1, "a"}))(t))
	saved(t, s, component, Revision{2, "b"}, "more values")
	check.SameNamed(t, "sets of", "1", numbers(t, s))
}

func TestARecordThatAssumesNoSecretKeepsWhatIsThere(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	keepSet(t, s.Assume(component), setWith(1, "a"), Retention{Limit: 10})
	keepSet(t, s.Assume(component), setWith(2, "b"), Retention{Limit: 10})
	check.SameNamed(t, "sets of", "2 1", numbers(t, s))
}

func TestALargeHistoryIsReadAgainBeforeItIsChanged(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	record := s.Assume(component)
	keepSet(t, record, setWith(1, noise(maxRemembered)), Retention{Limit: 10})
	if len(record.history) != 0 {
		t.Fatalf("%d bytes stay in memory", len(record.history))
	}
	keepSet(t, record, setWith(2, "b"), Retention{Limit: 10})
	check.SameNamed(t, "sets of", "2 1", numbers(t, s))
	keepSet(t, s.Assume(component), setWith(3, "c"), Retention{Limit: 10})
	set := setWith(4, "d")
	err := record.Save(t.Context(), Update{Revision: Revision{4, "d"}, Set: &set, Retention: Retention{Limit: 10}})
	if got := numbers(t, s); err != nil || got != "4 3 2 1" {
		t.Errorf("a record that was changed by another process: %v, sets of %q", err, got)
	}
}

func TestARecordOfAStorageThatWasRestoredIsReadAgain(t *testing.T) {
	for name, restore := range map[string]func(client.Client) error{
		"with another version": func(c client.Client) error {
			list := &corev1.SecretList{}
			if err := c.List(t.Context(), list); err != nil {
				return err
			}
			list.Items[0].Labels = map[string]string{"restored": "true"}
			return c.Update(t.Context(), &list.Items[0])
		},
		"without the Secret": func(c client.Client) error {
			return c.DeleteAllOf(t.Context(), &corev1.Secret{}, client.InNamespace(component.Namespace))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().Build()
			s := storeOn(c, "key")
			record := saved(t, s, component, Revision{1, "a"}, "one")
			check.NoError(t, restore(c))
			set := setWith(2, "b")
			err := record.Save(t.Context(), Update{Revision: Revision{2, "b"}, Content: []byte("two"), Set: &set, Retention: Retention{Limit: 10}})
			content, readErr := contentOf(t, s, component, Revision{2, "b"})
			if err := errors.Join(err, readErr); err != nil || content != "two" || numbers(t, s) != "2" {
				t.Errorf("%v; content %q, sets of %q", err, content, numbers(t, s))
			}
		})
	}
}

// noise returns text that cannot be compressed to fewer bytes than n.
func noise(n int) string {
	random := make([]byte, n)
	rand.Read(random)
	return hex.EncodeToString(random)
}

func TestEarlierSetsGiveWayIfThereIsNoRoom(t *testing.T) {
	var sets []Set
	for revision := int64(5); revision > 0; revision-- {
		sets = append(sets, setWith(revision, noise(1000)))
	}
	key := []byte("key")
	for _, test := range []struct {
		room int
		want string
	}{{20_000, "5 4 3 2 1"}, {5000, "5 4 3 2"}, {3800, "5 4 2"}, {2600, "5 2"}, {1500, "5"}} {
		sealed := check.Must(Retention{Limit: 10, LastReady: 2}.sealSets(key, nil, sets, test.room))(t)
		content := check.Must(open(key, nil, sealed))(t)
		kept, err := decodeHistory(content)
		var found []string
		for _, set := range kept {
			found = append(found, fmt.Sprint(set.Revision))
		}
		if got := strings.Join(found, " "); got != test.want || err != nil {
			t.Errorf("in %d bytes: %q, want %q (%v)", test.room, got, test.want, err)
		}
	}
	if _, err := (Retention{}).sealSets(key, nil, sets, 500); !IsTooLarge(err) {
		t.Errorf("no room for the latest: %v", err)
	}
}

func TestASetThatIsTooLargeHarmsNothingElse(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	record := s.Assume(component)
	keepSet(t, record, setWith(1, "a"), Retention{Limit: 10})
	set := setWith(2, noise(1<<20))
	err := record.Save(t.Context(), Update{Revision: Revision{2, "a"}, Content: []byte("values"), Set: &set, Retention: Retention{Limit: 10}})
	if !IsTooLarge(err) {
		t.Errorf("a set that is too large: %v", err)
	}
	check.SameNamed(t, "beside a set that is too large", "values", check.Must(contentOf(t, s, component, Revision{2, "a"}))(t))
	check.SameNamed(t, "sets of", "1", numbers(t, s))
}

func TestADamagedHistoryIsReportedAndStartsAgain(t *testing.T) {
	for name, damage := range map[string]func(data map[string][]byte){
		"a changed byte":       func(data map[string][]byte) { data["history"][30] ^= 1 },
		"cut off":              func(data map[string][]byte) { data["history"] = data["history"][:5] },
		"that of a content":    func(data map[string][]byte) { data["history"] = data["r1"] },
		"written with no seal": func(data map[string][]byte) { data["history"] = []byte(`{"objects":[],"sets":[]}`) },
	} {
		t.Run(name, func(t *testing.T) {
			s := storeOn(fake.NewClientBuilder().Build(), "key")
			set := setWith(1, "a")
			update := Update{Revision: Revision{1, "a"}, Content: []byte("values"), Set: &set, Retention: Retention{Limit: 10}}
			check.NoError(t, s.Assume(component).Save(t.Context(), update))
			secret := secretOf(t, s, component)
			damage(secret.Data)
			check.NoError(t, s.options.Client.Update(t.Context(), secret))
			record := check.Must(s.Read(t.Context(), component))(t)
			_, err := record.Sets(t.Context())
			if lost, ok := errors.AsType[*LostError](err); !ok || !lost.Changed || !strings.Contains(err.Error(), secret.Name) {
				t.Errorf("%v", err)
			}
			keepSet(t, record, setWith(2, "b"), Retention{Limit: 10})
			check.SameNamed(t, "sets of", "2", numbers(t, s))
		})
	}
}

func TestASetThatIsKeptIsNotWrittenAgain(t *testing.T) {
	s := storeOn(fake.NewClientBuilder().Build(), "key")
	keepSet(t, s.Assume(component), setWith(1, "a"), Retention{Limit: 10})
	before := secretOf(t, s, component).ResourceVersion
	keepSet(t, s.Assume(component), setWith(1, "a"), Retention{Limit: 10})
	if after := secretOf(t, s, component).ResourceVersion; after != before {
		t.Errorf("version %s, was %s", after, before)
	}
}
