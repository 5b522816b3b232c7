// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package revision finds out which revision of a component is applied, and what its objects are. It keeps the revisions in the status of
// the component: their digests, the history, the timeout of the current revision, and the earlier revision that a rollback pins.
package revision

import (
	"context"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// Source finds out which revision of a component is applied, and what the objects of the revision are. It is immutable.
type Source struct {
	Self     *identity.Operator
	Renderer *rendering.Renderer
	// DigestKey is the key of digests of content that may be secret.
	DigestKey func(context.Context) ([]byte, error)
	// References returns the references in the spec of a component.
	References func(identity.Component) []references.Found
	// Hooks runs the pre-reconcile hooks that may run in a preview, and names the other ones.
	Hooks func(context.Context, identity.Component) (others []string, err error)
	// HistoryLimit is how many revisions are kept.
	HistoryLimit int
	// AdoptReleases: components may take over Helm releases.
	AdoptReleases bool
	Now           func() time.Time
}

// Deployment is where the objects of a component are deployed.
type Deployment struct {
	Namespace, Name string
	// Adopted is what a Helm release has rendered that the component takes over; nil if there is none.
	Adopted *rendering.Adopted
}

// Candidate is the revision that a component would have now. It is the current one, or the next one.
type Candidate struct {
	Digests Digests
	Pin     Pin
	// RolledBack is the rollback in the status, as it was before the pin was found out.
	RolledBack *v1alpha1.Rollback
}

// ManifestDigest returns the digest of the manifests that the engine would apply for a component with a digest, and rendered objects.
type ManifestDigest func(ctx context.Context, obj identity.Component, objects []client.Object, component string) (string, error)

// Candidate returns the revision that a component would have now. It drops a rollback from the status that has ended.
func (s *Source) Candidate(ctx context.Context, obj identity.Component, t targets.Connection, d Deployment, manifest ManifestDigest) (c Candidate, err error) {
	if c.Digests, err = s.Digests(ctx, obj); err != nil {
		return c, err
	}
	if err := s.keepRevision(ctx, obj, c.Digests); err != nil {
		return c, err
	}
	if c.Digests, err = s.sameRevision(ctx, obj, t, d, c.Digests, manifest); err != nil {
		return c, err
	}
	c.RolledBack = obj.GetStatus().Rollback
	c.Pin, err = s.pinOf(ctx, obj, c.Digests)
	c.Digests = c.Pin.Digests(c.Digests)
	return c, err
}

// Digests returns the digests of a component. If an earlier generator renders the same, they are those of the earlier one.
func (s *Source) Digests(ctx context.Context, obj identity.Component) (Digests, error) {
	now, err := s.digestsWith(ctx, obj, renders.Digest(s.Renderer.Generator))
	if err != nil {
		return Digests{}, err
	}
	earlier, of, err := s.withEarlierGenerator(ctx, obj, now)
	if of == nil || of.Generator != now.Generator { // it was not found before that both render the same
		return now, err
	}
	return earlier, err
}

// keepRevision keeps the revision of a component if another key made its digests, of an operator that is gone or that lost its
// key: they differ although nothing has changed. A generation that no revision was counted for may be another one all the same.
func (s *Source) keepRevision(ctx context.Context, obj identity.Component, now Digests) error {
	key, err := s.DigestKey(ctx)
	if err != nil {
		return err
	}
	status := Of(obj)
	recorded, sealedBy := status.Processing(), status.Inventory.Operator
	counted := recorded.Generation == strconv.FormatInt(obj.GetGeneration(), 10)
	switch current := status.Current(); {
	case sealedBy == nil || sealedBy.Key == digest.Hasher{Key: key}.ID() || !counted:
	case current != nil && current.RollbackTo == 0 && current.Generator != "" && current.Generator != now.Generator: // another chart, or another version of it, is a change
	case current != nil && current.RollbackTo != 0: // its digest has no key
		if status.Rollback != nil {
			status.Rollback.Digest = now.Revision
		}
	default:
		recorded.Revision = now.Revision
		status.SetProcessing(recorded)
	}
	return nil
}

// Started is what the start of a candidate has changed in the status.
type Started struct {
	// New: a revision has started. Changed: the component is another one, or a revision has started.
	New, Changed bool
	// Rendered: the manifests of the revision were rendered before.
	Rendered bool
	// Dropped: an outdated definition had dropped the number of the revision.
	Dropped bool
	// Updates: the revision has another generator than the one before.
	Updates bool
}

// Start records a candidate in the status of a component: its digests, and a revision if they start one.
func (s *Source) Start(obj identity.Component, c Candidate) (started Started) {
	status := Of(obj)
	status.Source = s.sourceOf(obj, c.Pin)
	before := status.Revision
	started.Dropped = before == 0 && status.AppliedGeneration != 0
	started.Rendered = status.Processing().Manifests != ""
	started.Changed = status.StartProcessing(obj.GetGeneration(), c.Digests, s.Now())
	generator := c.Digests.Generator
	if c.Pin.IsSet() {
		generator = ""
		if entry := status.Entry(c.Pin.To); entry != nil {
			generator = entry.Generator
		}
	}
	status.Start(v1alpha1.RevisionStatus{ChangedBy: ChangedBy(obj, s.Self.FieldOwner, c.Pin), RollbackTo: c.Pin.To, Generator: generator}, s.HistoryLimit, s.Now())
	if started.New = status.Revision != before; started.New {
		started.Rendered = false
		started.Updates = !c.Pin.IsSet() && len(status.History) > 1 && status.History[1].Generator != generator
	}
	return started
}

// sourceOf returns the source of a component, or of the revision that it is pinned to; nil if the generator does not report it.
func (s *Source) sourceOf(obj identity.Component, p Pin) *v1alpha1.Source {
	if p.IsSet() {
		for _, number := range []int64{p.To, obj.GetStatus().Revision} {
			if entry := Of(obj).Entry(number); entry != nil && entry.Source != nil {
				return entry.Source.DeepCopy()
			}
		}
		return nil
	}
	return GeneratorSource(s.Renderer.Generator)
}

// GeneratorSource returns what a generator renders from; nil if it does not report it.
func GeneratorSource(generator manifests.Generator) *v1alpha1.Source {
	if source := renders.Source(generator); source != (v1alpha1.Source{}) {
		return &source
	}
	return nil
}

// Preview returns a source that renders with a generator, and keeps and reports nothing of it.
func (s *Source) Preview(generator manifests.Generator) *Source {
	preview, renderer := *s, *s.Renderer
	renderer.Generator, renderer.Preview = generator, true
	preview.Renderer = &renderer
	return &preview
}

// Request returns a request to render a component. The digest is that of the revision, which may have been rendered before.
func (s *Source) Request(obj identity.Component, d Deployment, digest string, rendered bool) rendering.Request {
	status := Of(obj)
	request := rendering.Request{
		Component: obj, Namespace: d.Namespace, Name: d.Name,
		Revision: revisions.Revision{Number: status.Revision, Digest: digest}, Rendered: rendered,
		Adopted: d.Adopted, HooksRan: status.AdoptsRelease() || status.RestoredFrom != "" && status.AppliedGeneration == 0 && !s.Renderer.HooksOnRestore,
		IsNew: status.AppliedGeneration == 0 && d.Adopted == nil, RestoredFrom: status.RestoredFrom,
		Retention: revisions.Retention{Limit: s.HistoryLimit},
	}
	if current := status.Current(); current != nil {
		request.Stored = current.Digest
	}
	if ready := status.LastReady(); ready != nil {
		request.LastReady = ready.Revision
	}
	return request
}

// Objects returns the objects to apply: the rendered ones or, for a component that is pinned, those of the earlier revision.
func (s *Source) Objects(ctx context.Context, obj identity.Component, request rendering.Request, p Pin, last *rendering.Last) (rendering.Rendering, error) {
	if !p.IsSet() {
		return s.Renderer.Render(ctx, request, last)
	}
	pinned := v1alpha1.RevisionStatus{Revision: p.To}
	if entry := Of(obj).Entry(p.To); entry != nil {
		pinned = *entry
	}
	if s.HistoryLimit == 0 {
		return rendering.Rendering{}, s.notKept(obj, p, nil)
	}
	restored, err := s.Renderer.Restore(ctx, request, pinned, last)
	return restored, s.notKept(obj, p, err)
}

// Stored returns the manifests of a revision as the history has them, and the pin of the revision if it is a rollback. The current
// revision counts if the revision is nil. Failed is the revision that was rolled back; 0 if there is none.
func (s *Source) Stored(ctx context.Context, obj identity.Component, d Deployment, of *v1alpha1.RevisionStatus, failed int64) (rendering.Rendering, Pin, error) {
	request := s.Request(obj, d, Of(obj).Processing().Revision, true)
	pin := Pin{Failed: failed}
	if of != nil {
		request.Revision.Number, request.Stored = of.Revision, of.Digest
		pin.To = of.RollbackTo
	}
	if pin.IsSet() {
		restored, err := s.Objects(ctx, obj, request, pin, &rendering.Last{})
		return restored, pin, err
	}
	stored, err := s.Renderer.Stored(ctx, request)
	return stored, pin, err
}

// StoredRevision returns the manifests of an entry of the history.
func (s *Source) StoredRevision(ctx context.Context, obj identity.Component, number int64, digest string) (rendering.Rendering, error) {
	request := s.Request(obj, Deployment{}, "", true)
	request.Revision.Number, request.Stored = number, digest
	return s.Renderer.Stored(ctx, request)
}

// ContextWithRevision adds to a context what generators and the hooks around apply and delete get. The digest is that of the component.
func ContextWithRevision(ctx context.Context, t targets.Connection, component string, status *Status) context.Context {
	if t.Target != nil {
		ctx = renders.WithTarget(ctx, t.Target)
	}
	known := manifests.FromContext(ctx)
	if t.Client != nil {
		known.Client = confidential.NotingClient(t.Client)
	}
	known.Digest, known.Revision, known.Upgrade = component, status.Revision, !status.Installs()
	return known.In(ctx)
}

// InPreview tells generators and hooks that objects are only shown.
func InPreview(ctx context.Context) context.Context {
	known := manifests.FromContext(ctx)
	known.Preview = true
	return known.In(ctx)
}
