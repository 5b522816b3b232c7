// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/helmrecord"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
)

// handback are the flags of release.
type handback struct {
	*frame
	toHelm, dryRun, keep bool
	name                 string
	wait                 waitFlags
	// leftOut are the objects of hooks that the record lacks.
	leftOut []string
}

const releaseHelp = `Make a component a Helm release again, with the same objects, and without a restart.

The command suspends the component and asks the running operator for the manifests and values. It records them as a pending revision of
the release, gives each object the labels and annotations of the release, marks the revision as deployed, and deletes the component
without its objects. Objects of hooks and of the folder crds of the chart are no part of a release; they stay without an owner.

The command writes nothing if the component is not ready, or if an object differs from its manifest or has another owner.
If the command ends early, run it again with the same arguments. Until then the component stays suspended, and its deletion keeps the objects.

With --keep-component the component stays, without finalizer and status and suspended for its operator, for a Helm operator of operator-sdk
of the same kind. Stop the operator of the component after this command, and before you start the Helm operator.`

func (f *frame) releaseCommand() *cobra.Command {
	h := &handback{frame: f}
	command := &cobra.Command{
		Use: "release " + componentUse + " --to-helm", Short: "Make a component a Helm release again", Long: releaseHelp,
		Example: "  corbel release shop/corner --to-helm -n market --dry-run\n  corbel release shop/corner --to-helm -n market",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error { return h.run(c.Context(), arguments) },
	}
	flags := command.Flags()
	flags.BoolVar(&h.toHelm, "to-helm", false, "make it a Helm release")
	flags.StringVar(&h.name, "name", "", "the name of the release; by default that of the deployment, after which charts name their objects")
	flags.BoolVar(&h.keep, "keep-component", false, "leave the component to a Helm operator of the same kind, in place of its deletion")
	flags.BoolVar(&h.dryRun, "dry-run", false, "print the release, and change nothing")
	h.wait.addTimeout(command)
	return command
}

const (
	// becoming is the reason of the suspension, before a helmrelease.Reference. It says that the record has the manifests.
	becoming = "it becomes Helm release "
	// madeFrom is the annotation of a record: the component, its uid and its revision. Helm drops it with its next change.
	madeFrom = "corbel.run/made-from"
)

// parting is a component on its way to a release.
type parting struct {
	component inspect.Component
	release   *helmrelease.Release
	record    *corev1.Secret
	objects   []metav1.PartialObjectMetadata // all that belong to the component
}

func (h *handback) run(ctx context.Context, arguments []string) error {
	if !h.toHelm {
		return usage("say what the component becomes: --to-helm")
	}
	if h.keep && h.name != "" {
		return usage("--keep-component and --name: a Helm operator finds the release by the name of the component only")
	}
	c, err := h.component(ctx, arguments)
	if apierrors.IsNotFound(err) {
		return h.gone(ctx, arguments, err)
	}
	if err != nil {
		return err
	}
	if h.keep && isLeft(c) {
		_, err := fmt.Fprintf(h.Out, "%s is left to the Helm operator\n", c)
		return err
	}
	connection, err := h.connect()
	if err != nil {
		return err
	}
	l, err := h.begun(ctx, connection, c)
	if err != nil {
		return err
	}
	if l == nil {
		if l, err = h.prepare(ctx, connection, c); err != nil {
			return err
		}
	}
	fmt.Fprint(h.Out, sentence.Printable(l.text()))
	if len(h.leftOut) > 0 {
		fmt.Fprintf(h.ErrOut, "the release lacks these objects of hooks until the next \"helm upgrade\", because they are in no namespace or another one and do not exist now: %s\n",
			strings.Join(h.leftOut, ", "))
	}
	if h.dryRun {
		return nil
	}
	if l.release.Status == helmrecord.StatusPending {
		if err := h.handOver(ctx, connection, l); err != nil {
			return err
		}
	}
	if h.keep {
		if err := h.leave(ctx, connection, l); err != nil {
			return err
		}
		fmt.Fprintf(h.Out, "%s is left to the Helm operator, and revision %d of %s is deployed\n", c, l.release.Revision, l.release.Title())
		return nil
	}
	if err := h.detach(ctx, connection, l); err != nil {
		return err
	}
	fmt.Fprintf(h.Out, "%s is gone, and revision %d of %s is deployed\n", c, l.release.Revision, l.release.Title())
	return nil
}

// gone answers for a component that does not exist: its release may be complete.
func (h *handback) gone(ctx context.Context, arguments []string, notFound error) error {
	connection, err := h.connect()
	if err != nil {
		return err
	}
	kind, name, err := split(arguments)
	if err != nil || kind == "" {
		return notFound
	}
	t, err := resolve(connection.reader, kind)
	if err != nil {
		return err
	}
	namespace, err := h.namespace()
	if err != nil {
		return err
	}
	records := &corev1.SecretList{}
	if err := connection.client.List(ctx, records, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}); err != nil {
		return errors.Join(notFound, err)
	}
	for _, record := range records.Items {
		title := "revision " + record.Labels["version"] + " of Helm release " + namespace + "/" + record.Labels["name"]
		switch {
		case !strings.HasPrefix(record.Annotations[madeFrom], t.Kind+" "+namespace+"/"+name+" "):
		case record.Labels["status"] == helmrecord.StatusPending:
			return fmt.Errorf("%w; it was deleted before all its objects belonged to %s: create it again, or delete Secret %s/%s and run \"helm upgrade\" with --take-ownership",
				notFound, title, namespace, record.Name)
		default:
			_, err := fmt.Fprintf(h.Out, "%s %s/%s is gone, and %s is %s\n", t.Kind, namespace, name, title, record.Labels["status"])
			return err
		}
	}
	return notFound
}

// begun returns what an earlier run of the command has begun with a component; nil if there was none, or if it changed nothing
// of the component.
func (h *handback) begun(ctx context.Context, connection *connection, c inspect.Component) (*parting, error) {
	text, ok := strings.CutPrefix(c.Annotation(vocabulary.AnnotationSuspendReason), becoming)
	if !ok || !isDetached(c) {
		return nil, nil
	}
	reference, err := helmrelease.ParseReference(text)
	if err != nil {
		return nil, fmt.Errorf("the reason of the suspension of %s: %w", c, err)
	}
	l := &parting{component: c, record: &corev1.Secret{}}
	key := client.ObjectKey{Namespace: reference.Namespace, Name: reference.RecordName()}
	if err := connection.client.Get(ctx, key, l.record); err != nil {
		return nil, fmt.Errorf("%s is suspended because it becomes %s, and the record of that cannot be read; \"%s\" leaves it a component: %w",
			c, reference.Title(), c.Command("resume"), err)
	}
	if l.release, err = helmrelease.Decode(l.record.Data["release"]); err != nil {
		return nil, fmt.Errorf("Secret %s: %w", key, err)
	}
	if l.release.Status == helmrecord.StatusPending && l.record.Annotations[madeFrom] != madeOf(c) {
		return nil, fmt.Errorf("%s was changed after its manifests were read for %s: \"%s\", and release it again when it is ready",
			c, reference.Title(), c.Command("resume"))
	}
	l.objects, err = h.objectsOf(ctx, connection, c)
	return l, err
}

// isDetached reports whether a component is suspended, and its deletion keeps the objects.
func isDetached(c inspect.Component) bool {
	return c.Annotation(vocabulary.AnnotationSuspend) == "true" && c.Annotation(v1alpha1.AnnotationManagementPolicy) == "detach-on-delete"
}

// madeOf is the annotation of the record of a component.
func madeOf(c inspect.Component) string {
	return fmt.Sprintf("%s %s %d", c, c.Object.GetUID(), c.Status.Revision)
}

// prepare reads what is needed for a release, or says why there can be none. It writes nothing.
func (h *handback) prepare(ctx context.Context, connection *connection, c inspect.Component) (*parting, error) {
	if err := steering.NotDeleting(c); err != nil {
		return nil, err
	}
	if !isReady(c) {
		return nil, fmt.Errorf("%s is not ready, and only a component that is can become a release: %s; \"%s\" says more", c, c.Ready().Message, c.Command("why"))
	}
	answer, err := h.ask(ctx, c, preview.Question{Manifests: true})
	if err != nil {
		return nil, err
	}
	var plan component.Plan
	if err := json.Unmarshal(answer.Plan, &plan); err != nil || answer.Manifests == nil {
		return nil, errors.Join(errors.New("the answer of the operator cannot be read"), err)
	}
	if err := releasable(c, plan); err != nil {
		return nil, err
	}
	l := &parting{component: c}
	if l.objects, err = h.objectsOf(ctx, connection, c); err != nil {
		return nil, err
	}
	if err := foreign(c, l.objects, nil); err != nil {
		return nil, err
	}
	reference := helmrelease.Reference{Namespace: answer.Manifests.Namespace, Name: h.name}
	if h.name == "" {
		reference.Name = answer.Manifests.Name
	}
	if err := helmrecord.CheckName(reference.Name); err != nil {
		return nil, fmt.Errorf("%w; choose one with --name", err)
	}
	records, err := helmrelease.Records(ctx, connection.client, reference.Namespace, reference.Name, "Secret", "ConfigMap")
	if err != nil {
		return nil, err
	}
	if reference.Revision, err = nextRevision(records, reference, c); err != nil {
		return nil, err
	}
	l.release = &helmrelease.Release{
		Reference: reference, Status: helmrecord.StatusPending, Chart: plan.Source.Chart, ChartVersion: plan.Source.Version, AppVersion: plan.Source.AppVersion,
		DeployedAt: h.now(), Values: answer.Manifests.Values,
	}
	files, err := h.addManifests(ctx, connection, c, l.release, answer.Manifests.Objects)
	if err != nil {
		return nil, err
	}
	if l.record, err = helmrecord.Record(l.release, answer.Manifests.DefaultValues, "Released from "+c.String(), files); err != nil {
		return nil, err
	}
	l.record.Annotations = map[string]string{madeFrom: madeOf(c)}
	return l, nil
}

// releasable returns why a component cannot become a release.
func releasable(c inspect.Component, plan component.Plan) error {
	switch {
	case plan.Remote:
		return fmt.Errorf("the objects of %s are in another cluster, and the records of Helm would be in this one: install the chart there with --take-ownership", c)
	case plan.Source == nil || plan.Source.Chart == "":
		return fmt.Errorf("%s is not rendered from a Helm chart alone, so Helm could not upgrade it", c)
	case plan.RollbackTo != 0:
		return fmt.Errorf("%s is rolled back to revision %d, so its spec does not have the values of its manifests; \"%s\" ends that", c, plan.RollbackTo, c.Command("rollback", "--end"))
	}
	var different []string
	for _, wait := range plan.Waiting {
		different = append(different, fmt.Sprintf("%s: %s", wait.Key, wait.Message))
	}
	for _, change := range plan.Changes {
		text := fmt.Sprintf("%s: %s", change.Key, change.Class)
		if change.Message != "" {
			text += ", " + change.Message
		}
		different = append(different, text)
	}
	if len(different) > 0 {
		return fmt.Errorf("not all objects of %s are as its manifests say: %s; \"%s\" says more", c, strings.Join(different, "; "), c.Command("plan"))
	}
	return nil
}

// nextRevision returns the number of the new revision: that of an earlier run, else one after all that are known. A release of that
// name that is none of the component is an error.
func nextRevision(records []metav1.PartialObjectMetadata, reference helmrelease.Reference, c inspect.Component) (int64, error) {
	next := c.Status.Revision + 1
	adopted := c.Status.AdoptedRelease
	for i, record := range records { // the last revision is the last one
		revision, status := helmrelease.RevisionOf(record), record.Labels["status"]
		ours := isMadeFor(&record, c)
		wasAdopted := adopted != nil && *adopted == v1alpha1.AdoptedRelease{Namespace: reference.Namespace, Name: reference.Name, Revision: revision}
		switch {
		case ours:
			return revision, nil
		case wasAdopted && record.Kind != "Secret":
			return 0, fmt.Errorf("the record of %s is %s %s, and the new one would be a Secret: delete it first", reference.Title(), record.Kind, record.Name)
		case wasAdopted:
		case status == helmrelease.StatusDeployed, i == len(records)-1 && (strings.HasPrefix(status, "pending-") || status == "uninstalling"):
			return 0, fmt.Errorf("there is a %s already: its revision %d is %s; choose another name with --name, or delete its records if its objects are those of %s",
				reference.Title(), revision, status, c)
		}
		next = max(next, revision+1)
	}
	return next, nil
}

// text says what belongs to the release.
func (l *parting) text() string {
	var text, left strings.Builder
	r := l.release
	fmt.Fprintf(&text, "%s becomes revision %d of %s, of the chart %s %s, with these objects:\n", l.component, r.Revision, r.Title(), r.Chart, r.ChartVersion)
	for _, object := range l.objects {
		to := &left
		if isIn(r, object) {
			to = &text
		}
		fmt.Fprintf(to, "  %s %s\n", object.Kind, strings.TrimPrefix(object.Namespace+"/"+object.Name, "/"))
	}
	if left.Len() > 0 {
		text.WriteString("These stay, without an owner:\n" + left.String())
	}
	return text.String()
}

// handOver makes the objects those of the release.
func (h *handback) handOver(ctx context.Context, connection *connection, l *parting) error {
	if l.record.ResourceVersion == "" { // else the component is suspended for it
		if err := h.begin(ctx, connection, l); err != nil {
			return err
		}
	}
	suspended := goal{text: "suspended", reached: func(c inspect.Component) bool { return c.Status.State == v1alpha1.StateSuspended }}
	if err := h.waitFor(ctx, l.component, h.wait.timeout, suspended); err != nil {
		return err
	}
	now, err := connection.reader.Get(ctx, l.component.Type, client.ObjectKeyFromObject(l.component.Object))
	if err != nil {
		return err
	}
	if l.record.Annotations[madeFrom] != madeOf(now) || !isDetached(now) {
		return fmt.Errorf("%s was changed meanwhile: \"%s\", and release it again when it is ready", now, now.Command("resume"))
	}
	// They are read when nothing changes them any more. What others own by now stays theirs.
	if l.objects, err = h.objectsOf(ctx, connection, now); err != nil {
		return err
	}
	if err := foreign(now, l.objects, l.release); err != nil {
		return err
	}
	for _, object := range l.objects {
		if err := h.mark(ctx, connection, l, object); err != nil {
			return err
		}
	}
	if err := h.supersede(ctx, connection, l.release.Reference); err != nil {
		return err
	}
	if err := helmrecord.SetStatus(l.record, helmrelease.StatusDeployed); err != nil {
		return err
	}
	if err := connection.client.Update(ctx, l.record, client.FieldOwner(steering.FieldManager)); err != nil {
		return fmt.Errorf("set the status of revision %d of %s: %w", l.release.Revision, l.release.Title(), err)
	}
	return nil
}

// isMadeFor reports whether a record is one of the component that is not deployed yet.
func isMadeFor(record client.Object, c inspect.Component) bool {
	return record.GetLabels()["status"] == helmrecord.StatusPending && strings.HasPrefix(record.GetAnnotations()[madeFrom], fmt.Sprintf("%s %s ", c, c.Object.GetUID()))
}

// begin writes the record, and suspends the component.
func (h *handback) begin(ctx context.Context, connection *connection, l *parting) error {
	content := l.record.DeepCopy()
	err := connection.client.Create(ctx, l.record, client.FieldOwner(steering.FieldManager))
	if apierrors.IsAlreadyExists(err) { // an earlier run came no further
		err = connection.client.Get(ctx, client.ObjectKeyFromObject(content), l.record)
		if err == nil && !isMadeFor(l.record, l.component) {
			return fmt.Errorf("revision %d of %s was made meanwhile; run the command again", l.release.Revision, l.release.Title())
		}
		if err == nil {
			l.record.Data, l.record.Labels, l.record.Annotations = content.Data, content.Labels, content.Annotations
			err = connection.client.Update(ctx, l.record, client.FieldOwner(steering.FieldManager))
		}
	}
	if err != nil {
		return fmt.Errorf("write the record of %s: %w", l.release.Title(), err)
	}
	value, reason, policy := "true", becoming+l.release.Reference.String(), "detach-on-delete"
	suspend := &steer{frame: h.frame, decide: func(now inspect.Component) (steering.Annotations, string, error) {
		if !isReady(now) || madeOf(now) != madeOf(l.component) || now.Object.GetGeneration() != l.component.Object.GetGeneration() {
			return nil, "", fmt.Errorf("%s was changed meanwhile; run the command again when it is ready, or delete Secret %s/%s", now, l.record.Namespace, l.record.Name)
		}
		return steering.Annotations{vocabulary.AnnotationSuspend: &value, vocabulary.AnnotationSuspendReason: &reason, v1alpha1.AnnotationManagementPolicy: &policy}, "", nil
	}}
	_, _, err = suspend.annotate(ctx, l.component)
	return err
}

// supersede sets the status of the revisions before the new one, as Helm does.
func (h *handback) supersede(ctx context.Context, connection *connection, by helmrelease.Reference) error {
	records, err := helmrelease.Records(ctx, connection.client, by.Namespace, by.Name, "Secret", "ConfigMap")
	if err != nil {
		return err
	}
	for _, record := range records {
		if record.Kind != "Secret" || record.Labels["status"] != helmrelease.StatusDeployed || helmrelease.RevisionOf(record) >= by.Revision {
			continue
		}
		secret := &corev1.Secret{}
		err := connection.client.Get(ctx, client.ObjectKeyFromObject(&record), secret)
		if err == nil {
			err = helmrecord.SetStatus(secret, helmrecord.StatusSuperseded)
		}
		if err == nil {
			err = connection.client.Update(ctx, secret, client.FieldOwner(steering.FieldManager))
		}
		if err != nil {
			return fmt.Errorf("set the status of Secret %s/%s: %w", record.Namespace, record.Name, err)
		}
	}
	return nil
}

// detach deletes the component, and no object. The request demands the component as it was read, because without the annotation the
// operator would delete its objects.
func (h *handback) detach(ctx context.Context, connection *connection, l *parting) error {
	c := l.component
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := connection.reader.Get(ctx, c.Type, client.ObjectKeyFromObject(c.Object))
		switch {
		case err != nil:
			return err
		case now.Object.GetUID() != c.Object.GetUID():
			return fmt.Errorf("%s was deleted and created again meanwhile, and is not deleted", c)
		case !isDetached(now):
			return fmt.Errorf("%s is not deleted, because it is no longer suspended, or its deletion would not keep its objects: set the annotations again, and run the command again", c)
		case now.Object.GetDeletionTimestamp() != nil:
			return nil
		}
		uid, version := now.Object.GetUID(), now.Object.GetResourceVersion()
		return connection.client.Delete(ctx, now.Object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", c, err)
	}
	return h.waitFor(ctx, c, h.wait.timeout, goal{text: "gone"})
}

// isLeft reports whether a component was left to a Helm operator, which may have written the status since.
func isLeft(c inspect.Component) bool {
	isOurs := func(name string) bool { return name == c.Reconciler || strings.HasPrefix(name, c.Reconciler+"/") }
	return c.Annotation(vocabulary.AnnotationSuspend) == "true" && c.Status.AppliedGeneration == 0 && !slices.ContainsFunc(c.Object.GetFinalizers(), isOurs)
}

// leave takes the status, the finalizers and the annotations of its operator from a component. It stays suspended: the operator would take
// the release over again.
func (h *handback) leave(ctx context.Context, connection *connection, l *parting) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := connection.reader.Get(ctx, l.component.Type, client.ObjectKeyFromObject(l.component.Object))
		switch {
		case err != nil:
			return err
		case now.Object.GetUID() != l.component.Object.GetUID() || !isDetached(now):
			return fmt.Errorf("%s was changed meanwhile, and is not left to another operator; run the command again", l.component)
		}
		object, prefix := now.Object, now.Reconciler+"/"
		object.Object["status"] = map[string]any{"reconciler": now.Reconciler} // by this, another run of the command knows the operator
		if err := connection.client.Status().Update(ctx, object, client.FieldOwner(steering.FieldManager)); err != nil {
			return fmt.Errorf("write the status of %s: %w", now, err)
		}
		object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(), func(name string) bool { return name == now.Reconciler || strings.HasPrefix(name, prefix) }))
		annotations := object.GetAnnotations()
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return strings.HasPrefix(key, prefix) && key != prefix+vocabulary.AnnotationSuspend
		})
		object.SetAnnotations(annotations)
		if err := connection.client.Update(ctx, object, client.FieldOwner(steering.FieldManager)); err != nil {
			return fmt.Errorf("take the finalizer and the annotations of its operator from %s: %w", now, err)
		}
		return nil
	})
}
