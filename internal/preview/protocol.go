// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/gzipped"
)

// Version is the form of an Answer. It changes when readers of an older form would misunderstand it.
const Version = "corbel.run/preview/v1"

const (
	// Label is the suffix of the label of the Secrets: the uid of the component.
	Label = "preview-of"
	// secretType is the suffix of the type of the Secrets.
	secretType = "preview"

	entryEdited = "edited"
	entryAnswer = "answer"

	secretPrefix = "corbel-preview-"
)

const (
	// Life is how long a request is answered, and how long an answer is kept.
	//
	// Limit: the life of a request for a preview, and of its answer.
	Life = 10 * time.Minute
	// MaxEdited is how large an edited component may be.
	//
	// Unit: bytes
	// Limit: the JSON of an edited component for a preview by the running operator; a larger one is refused.
	MaxEdited = 512 << 10
	// maxAnswer is how large a compressed answer may be.
	//
	// Unit: bytes
	// Limit: the compressed answer to a request for a preview; a larger one is an error.
	maxAnswer = 900 << 10
	// maxUnpacked bounds the unpacked answer.
	maxUnpacked = 256 << 20
)

// Actions of a Request.
const (
	// ActionPlan plans the component as it is stored.
	ActionPlan = "plan"
	// ActionEdited plans it as the Secret has it.
	ActionEdited = "edited"
	// ActionDelete plans its deletion.
	ActionDelete = "delete"
	// ActionDiff compares two revisions of its history.
	ActionDiff = "diff"
	// ActionManifests plans the component as it is stored, and returns the manifests, too.
	ActionManifests = "manifests"
)

// Request is the request of a user. Its text, the value of the annotation, is one of
//
//	<nonce>
//	<nonce> edited
//	<nonce> delete
//	<nonce> manifests
//	<nonce> diff 3..5
type Request struct {
	Nonce  string
	Action string
	// From and To are the revisions of ActionDiff.
	From, To int64
}

// encoding is the encoding of the random part of a nonce: names of objects have lower case letters.
var encoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewRequest returns a request with a nonce of its own.
func NewRequest(action string, now time.Time) Request {
	random := make([]byte, 10)
	rand.Read(random) // never fails
	return Request{Nonce: strconv.FormatInt(now.Unix(), 10) + "-" + encoding.EncodeToString(random), Action: action}
}

// String returns the value of the annotation.
func (r Request) String() string {
	switch r.Action {
	case ActionPlan:
		return r.Nonce
	case ActionDiff:
		return fmt.Sprintf("%s %s %d..%d", r.Nonce, r.Action, r.From, r.To)
	default:
		return r.Nonce + " " + r.Action
	}
}

// form is the value of the annotation.
var form = regexp.MustCompile(`^([0-9]{1,12}-[a-z2-7]{16})(?: (edited|delete|manifests|diff ([0-9]{1,18})\.\.([0-9]{1,18})))?$`)

// ParseRequest reads the value of the annotation.
func ParseRequest(text string) (Request, error) {
	parts := form.FindStringSubmatch(text)
	if parts == nil {
		return Request{}, fmt.Errorf("%.64q is no request for a preview", text)
	}
	r := Request{Nonce: parts[1], Action: ActionPlan}
	r.From, _ = strconv.ParseInt(parts[3], 10, 64) // has the form of a number, or is empty
	r.To, _ = strconv.ParseInt(parts[4], 10, 64)
	if parts[2] != "" {
		r.Action, _, _ = strings.Cut(parts[2], " ")
	}
	return r, nil
}

// Asked returns when the request was made, by the clock of its user.
func (r Request) Asked() time.Time {
	seconds, _, _ := strings.Cut(r.Nonce, "-")
	n, _ := strconv.ParseInt(seconds, 10, 64) // of a parsed request it is a number
	return time.Unix(n, 0)
}

// IsExpired reports whether the request is too old to be answered. One from the future is as old.
func (r Request) IsExpired(now time.Time) bool {
	return now.Sub(r.Asked()).Abs() >= Life
}

// SecretName is the name of the Secret of the request.
func (r Request) SecretName() string { return secretPrefix + r.Nonce }

// Answer is the operator's answer.
type Answer struct {
	// Version is the version of this package.
	Version string `json:"version"`
	// Request is the value of the annotation that is answered.
	Request string `json:"request"`
	// Error says why there is nothing else.
	Error string `json:"error,omitempty"`
	// Hidden counts the objects whose values are left out, because they are in another namespace or cluster.
	Hidden int `json:"hidden,omitempty"`
	// Plan is a component.Plan.
	Plan json.RawMessage `json:"plan,omitempty"`
	// Changes are the differences between two revisions: a list of report.PlannedChange.
	Changes json.RawMessage `json:"changes,omitempty"`
	// Manifests are the manifests that the plan applies, if they were asked for.
	Manifests *Manifests `json:"manifests,omitempty"`
}

// Manifests are the objects of a component as its operator renders them.
type Manifests struct {
	// Namespace and Name are those of the deployment. Objects without a namespace are in this one,
	// if their type has namespaces.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Values are the parameters that they are rendered with: the values of a chart.
	Values map[string]any `json:"values,omitempty"`
	// DefaultValues are the values of the chart, which Values override.
	DefaultValues map[string]any `json:"defaultValues,omitempty"`
	// Objects are in the order of the generator.
	Objects []Manifest `json:"objects"`
}

// Manifest is an object as it is rendered.
type Manifest struct {
	// File is where it comes from, such as shop/templates/web.yaml; it is empty if that is not known.
	File string `json:"file,omitempty"`
	// Hidden: the object is in another namespace or cluster than the answer, so all values are null
	// but its kind and name.
	Hidden bool           `json:"hidden,omitempty"`
	Object map[string]any `json:"object"`
}

// Hide removes the values of the manifest, but not its kind and name.
func (m *Manifest) Hide() {
	m.Hidden = true
	named := &unstructured.Unstructured{Object: m.Object}
	m.Object, _ = withoutValues(m.Object).(map[string]any)
	hidden := &unstructured.Unstructured{Object: m.Object}
	hidden.SetGroupVersionKind(named.GroupVersionKind())
	hidden.SetNamespace(named.GetNamespace())
	hidden.SetName(named.GetName())
}

// withoutValues returns a JSON value in which each text, number and truth value is null.
func withoutValues(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := map[string]any{}
		for key, field := range value {
			fields[key] = withoutValues(field)
		}
		return fields
	case []any:
		var elements []any
		for _, element := range value {
			elements = append(elements, withoutValues(element))
		}
		return elements
	}
	return nil
}

// Owner is the component that a Secret belongs to.
type Owner struct {
	// Reconciler is the name of the reconciler.
	Reconciler       string
	APIVersion, Kind string
	Name             string
	UID              types.UID
	// Namespace is the namespace of the Secrets.
	Namespace string
}

// Secret returns the Secret of a request, without content.
func (o Owner) Secret(r Request) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: r.SecretName(),
			Labels:          o.Labels(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}},
		},
		Type: o.SecretType(),
		Data: map[string][]byte{},
	}
}

// Labels are those by which all Secrets of the component are found.
func (o Owner) Labels() map[string]string {
	return map[string]string{o.Reconciler + "/" + Label: string(o.UID)}
}

// Owns reports whether a Secret is one of a request about the component.
func (o Owner) Owns(secret *corev1.Secret) bool {
	return secret.Type == o.SecretType() && secret.Labels[o.Reconciler+"/"+Label] == string(o.UID) &&
		IsName(secret.Name)
}

// SecretType is the type of all Secrets of requests about components of the reconciler.
func (o Owner) SecretType() corev1.SecretType {
	return corev1.SecretType(o.Reconciler + "/" + secretType)
}

// IsName reports whether a Secret of a request can have the name.
func IsName(name string) bool { return strings.HasPrefix(name, secretPrefix) }

// IsAnswered reports whether a Secret has an answer.
func IsAnswered(secret *corev1.Secret) bool { return len(secret.Data[entryAnswer]) > 0 }

// SetEdited puts an edited component into the Secret.
func SetEdited(secret *corev1.Secret, object map[string]any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("the edited component: %w", err)
	}
	if len(text) > MaxEdited {
		return fmt.Errorf("the edited component has %d bytes as JSON; the operator is asked about at most %d", len(text), MaxEdited)
	}
	secret.Data[entryEdited] = text
	return nil
}

// EditedIn returns the edited component of a Secret.
func EditedIn(secret *corev1.Secret) (map[string]any, error) {
	text := secret.Data[entryEdited]
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("Secret %s/%s has no edited component", secret.Namespace, secret.Name)
	case len(text) > MaxEdited:
		return nil, fmt.Errorf("the edited component has %d bytes as JSON; at most %d are planned", len(text), MaxEdited)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, errors.New("the edited component is no JSON object")
	}
	return object, nil
}

// SetAnswer puts the answer into the Secret, in the place of the edited component.
func SetAnswer(secret *corev1.Secret, answer Answer) error {
	answer.Version = Version
	packed, err := pack(answer)
	if err != nil {
		return err
	}
	if size := len(packed); size > maxAnswer {
		answer = Answer{Version: Version, Request: answer.Request, Error: fmt.Sprintf(
			"the answer has %d bytes, compressed, and at most %d fit into a Secret: use the command plan of the operator's own program", size, maxAnswer)}
		if packed, err = pack(answer); err != nil {
			return err
		}
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[entryAnswer] = packed
	delete(secret.Data, entryEdited)
	return nil
}

func pack(answer Answer) ([]byte, error) {
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, fmt.Errorf("write the answer: %w", err)
	}
	return gzipped.Pack(text), nil
}

// AnswerIn reads the answer in a Secret.
func AnswerIn(secret *corev1.Secret) (Answer, error) {
	about := func(err error) error {
		return fmt.Errorf("the answer in Secret %s/%s cannot be read: %w", secret.Namespace, secret.Name, err)
	}
	text, err := gzipped.Unpack(secret.Data[entryAnswer], maxUnpacked)
	var answer Answer
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		return Answer{}, about(err)
	}
	if answer.Version != Version {
		return Answer{}, about(fmt.Errorf("it has the version %q, and this program reads %s: use the release of corbel that the operator is built with", answer.Version, Version))
	}
	return answer, nil
}
