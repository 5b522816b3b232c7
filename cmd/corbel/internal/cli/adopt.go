// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/steering"
	"github.com/corbel-run/corbel/internal/helmrelease"
	"github.com/corbel-run/corbel/internal/planview"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// adoption are the flags of adopt helm.
type adoption struct {
	*frame
	as, reconciler string
	dryRun, retire bool
	wait           waitFlags
}

const adoptHelmHelp = `Take over a Helm release as a new component, with the same objects, and without a restart.

The values of the release become the spec of the component. A value goes to the field of the same path, or below spec.values.
If a value fits neither, the command names the value and writes nothing.

The command creates the component suspended and asks the running operator for its plan. If the plan only adds labels and annotations,
the command ends the suspension and waits until the component is ready. Otherwise it deletes the component and prints the other changes.
With --retire it then deletes the records of the release; without, it prints the command that does so.

If the command ends early, run it again with the same arguments.`

func (f *frame) adoptCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "adopt", Short: "Take over objects that another tool has installed, or that were restored", Args: cobra.NoArgs,
		Long:    "Take over objects that another tool has installed, as a new component; or objects that were restored with a component into another namespace.",
		Example: "  corbel adopt helm corner --as shop/corner -n market\n  corbel adopt restored shop/corner -n branch",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() }, // so that another word is an error
	}
	command.AddCommand(f.adoptHelmCommand(), f.adoptRestoredCommand())
	return command
}

func (f *frame) adoptHelmCommand() *cobra.Command {
	a := &adoption{frame: f}
	command := &cobra.Command{
		Use: "helm RELEASE --as KIND/NAME", Short: "Take over a Helm release as a new component", Long: adoptHelmHelp,
		Example: "  corbel adopt helm corner --as shop/corner -n market --dry-run\n  corbel adopt helm corner --as shop/corner -n market --retire",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, arguments []string) error { return a.run(c.Context(), arguments[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&a.as, "as", "", "the kind and the name of the component")
	flags.BoolVar(&a.dryRun, "dry-run", false, "print the component, and write nothing")
	flags.BoolVar(&a.retire, "retire", false, "delete the records of the release when the component is ready")
	flags.StringVar(&a.reconciler, "reconciler", "", "the name of the reconciler, if no other component and no Lease tells it")
	a.wait.addTimeout(command)
	flags.SortFlags = false
	// Here --as names the component, and not a user to impersonate.
	user := f.flags.Impersonate
	f.flags.Impersonate = nil
	f.addClusterFlags(command)
	f.flags.Impersonate = user
	completeNoFiles(command)
	return command
}

func (a *adoption) run(ctx context.Context, name string) error {
	if !strings.Contains(a.as, "/") {
		return usage("name the component with --as KIND/NAME")
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	manifest, t, release, err := a.component(ctx, c, name)
	if missing, ok := errors.AsType[*helmrelease.NotFoundError](err); ok && manifest != nil {
		return a.done(ctx, c, t, client.ObjectKeyFromObject(manifest), missing)
	}
	if err != nil {
		return err
	}
	created, err := a.begun(ctx, c, manifest, t, release.Reference)
	if err != nil {
		return err
	}
	strict := client.WithFieldValidation(c.client, metav1.FieldValidationStrict)
	if created.Object == nil {
		if err := strict.Create(ctx, manifest.DeepCopy(), client.DryRunAll, client.FieldOwner(steering.FieldManager)); err != nil {
			return fmt.Errorf("the server refuses the component: %w", err)
		}
	}
	if a.dryRun {
		return a.printManifest(manifest)
	}
	if err := fluxIsSuspended(ctx, c.client, release); err != nil {
		return err
	}
	if created.Object == nil {
		if err := strict.Create(ctx, manifest, client.FieldOwner(steering.FieldManager)); err != nil {
			return fmt.Errorf("create the component: %w", err)
		}
		created = inspect.Component{Object: manifest, Type: t, Reconciler: a.reconciler}
	}
	if created.Annotation(vocabulary.AnnotationSuspend) != "" { // else an earlier run has planned it, and ended the suspension
		if err := a.planned(ctx, created, release); err != nil {
			return errors.Join(err, a.undo(context.WithoutCancel(ctx), c, created))
		}
	}
	if err := a.take(ctx, created); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s has taken over %s\n", created.ResourceName(), release.Title())
	return a.retireRelease(ctx, c, release.Reference)
}

// begun returns the component of an earlier run of the command, which ended before it was done; there may be none.
func (a *adoption) begun(ctx context.Context, c *connection, manifest *unstructured.Unstructured, t inspect.Type, release helmrelease.Reference) (inspect.Component, error) {
	found, err := c.reader.Get(ctx, t, client.ObjectKeyFromObject(manifest))
	if err != nil {
		return inspect.Component{}, client.IgnoreNotFound(err)
	}
	found.Reconciler = a.reconciler
	suspended, applied := found.Annotation(vocabulary.AnnotationSuspend) == "true", found.Status.AppliedGeneration != 0 || !found.Status.Inventory.IsEmpty()
	switch {
	case found.Annotation(vocabulary.AnnotationAdoptHelmRelease) == release.String():
	case applied:
		return found, fmt.Errorf("%s exists already, and only a new component takes over revision %d of %s", found, release.Revision, release.Title())
	default:
		return found, fmt.Errorf("%s exists already, and only a new component takes over revision %d of %s; it was not applied yet: delete it", found, release.Revision, release.Title())
	}
	switch {
	case found.Object.GetDeletionTimestamp() != nil:
		return found, fmt.Errorf("%s is being deleted; run the command again when it is gone", found)
	case !suspended:
		return found, nil
	case applied:
		return found, fmt.Errorf("%s is suspended, and its operator has begun to apply it: \"%s\", and run the command again", found, found.Command("resume"))
	}
	// With another spec it is not what this command would plan, or delete.
	same := found.Object.DeepCopy()
	same.Object["spec"] = manifest.DeepCopy().Object["spec"]
	if err := c.client.Update(ctx, same, client.DryRunAll, client.FieldOwner(steering.FieldManager)); err != nil {
		return found, fmt.Errorf("the server refuses the component: %w", err)
	}
	if !equality.Semantic.DeepEqual(same.Object["spec"], found.Object.Object["spec"]) {
		return found, fmt.Errorf("%s exists already, suspended, with another spec than the values of the release give: delete it, or resume it", found)
	}
	fmt.Fprintf(a.ErrOut, "%s was created by an earlier run, and is taken up again\n", found)
	return found, nil
}

// done says that a release without records was taken over by the component.
func (a *adoption) done(ctx context.Context, c *connection, t inspect.Type, key client.ObjectKey, missing *helmrelease.NotFoundError) error {
	found, err := c.reader.Get(ctx, t, key)
	adopted := found.Status.AdoptedRelease
	if err != nil || adopted == nil || adopted.Namespace != missing.Namespace || adopted.Name != missing.Name {
		return missing
	}
	_, err = fmt.Fprintf(a.Out, "%s has taken over %s, and its records are deleted\n", found.ResourceName(), missing.Title())
	return err
}

// fluxIsSuspended returns an error if a HelmRelease of Flux delivers the release, and is not suspended: its deletion would uninstall
// the release, and an upgrade would change its objects.
func fluxIsSuspended(ctx context.Context, c client.Reader, release *helmrelease.Release) error {
	key := release.Flux()
	if key.Name == "" {
		return nil
	}
	flux := &unstructured.Unstructured{}
	flux.SetGroupVersionKind(schema.GroupVersionKind{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"})
	err := c.Get(ctx, key, flux)
	switch suspended, _, _ := unstructured.NestedBool(flux.Object, "spec", "suspend"); {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && suspended:
		return nil
	case err != nil:
		return fmt.Errorf("read HelmRelease %s of Flux, which delivers %s: %w", key, release.Title(), err)
	}
	return fmt.Errorf("HelmRelease %s of Flux delivers %s, and is not suspended: set its spec.suspend to true first", key, release.Title())
}

// undo deletes a component that its operator has not applied. Another one stays: its deletion would delete the objects. The
// request demands the component as it was read, because the operator writes it before it applies anything.
func (a *adoption) undo(ctx context.Context, c *connection, created inspect.Component) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := c.reader.Get(ctx, created.Type, client.ObjectKeyFromObject(created.Object))
		switch {
		case err != nil:
			return err
		case now.Object.GetUID() != created.Object.GetUID():
			return errors.New("it was deleted and created again meanwhile")
		case now.Status.State != v1alpha1.StateSuspended && now.Status.State != "" || len(now.Status.Inventory.Items) > 0:
			return errors.New("it is not suspended, and its operator may have begun to apply it: the name of its reconciler may be another one; " +
				"look at it with corbel tree, and see docs/howto-operate.md for a deletion that keeps the objects")
		}
		uid, version := now.Object.GetUID(), now.Object.GetResourceVersion()
		return c.client.Delete(ctx, now.Object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("%s is not deleted again: %w", created, err)
	}
	if err := a.waitFor(ctx, created, a.wait.timeout, goal{text: "gone"}); err != nil {
		return err
	}
	fmt.Fprintf(a.ErrOut, "%s is deleted again; the release is as it was\n", created)
	return nil
}

// component returns the component that takes over the release, suspended. If there is no release, it comes without a spec.
func (a *adoption) component(ctx context.Context, c *connection, name string) (*unstructured.Unstructured, inspect.Type, *helmrelease.Release, error) {
	fail := func(err error) (*unstructured.Unstructured, inspect.Type, *helmrelease.Release, error) {
		return nil, inspect.Type{}, nil, err
	}
	kind, as, err := split([]string{a.as})
	if err != nil {
		return fail(err)
	}
	namespace, err := a.namespace()
	if err != nil {
		return fail(err)
	}
	t, err := resolve(c.reader, kind)
	if err != nil {
		return fail(err)
	}
	if !t.Component || !t.Namespaced {
		return fail(fmt.Errorf("%s is no type of components in namespaces", t))
	}
	manifest := &unstructured.Unstructured{Object: map[string]any{}}
	manifest.SetGroupVersionKind(t.GroupVersionKind)
	manifest.SetNamespace(namespace)
	manifest.SetName(as)
	reference, err := helmrelease.Latest(ctx, c.client, namespace, name, "Secret", "ConfigMap")
	if err != nil {
		return manifest, t, nil, err
	}
	release, err := helmrelease.Read(ctx, c.client, reference)
	if err != nil {
		return fail(err)
	}
	specSchema, err := specSchemaOf(ctx, c.client, t)
	if err != nil {
		return fail(err)
	}
	spec, unmapped := specOf(release.Values, specSchema)
	if len(unmapped) > 0 {
		return fail(fmt.Errorf("the spec of %s has no place for these values of %s: %s", t.Kind, reference.Title(), strings.Join(unmapped, ", ")))
	}
	if a.reconciler == "" {
		if a.reconciler, err = a.guessReconciler(ctx, c, t); err != nil {
			return fail(err)
		}
	}
	manifest.Object["spec"] = spec
	manifest.SetAnnotations(map[string]string{
		a.reconciler + "/" + vocabulary.AnnotationAdoptHelmRelease: reference.String(), a.reconciler + "/" + vocabulary.AnnotationSuspend: "true",
	})
	return manifest, t, release, nil
}

// guessReconciler returns the name of the reconciler of a type: that of another component or, if an operator holds a Lease
// of that name, the group. A wrong one would not suspend the component.
func (a *adoption) guessReconciler(ctx context.Context, c *connection, t inspect.Type) (string, error) {
	found := errors.New("found")
	name := ""
	_, err := c.reader.List(ctx, t, inspect.Selection{}, func(other inspect.Component) error {
		if name = other.Reconciler; name != "" {
			return found
		}
		return nil
	})
	if name != "" {
		return name, nil
	}
	if err == nil {
		leases := &metav1.PartialObjectMetadataList{}
		leases.SetGroupVersionKind(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "LeaseList"})
		err = c.client.List(ctx, leases, client.MatchingFields{"metadata.name": t.Group})
		if err == nil && len(leases.Items) > 0 {
			return t.Group, nil
		}
	}
	return "", errors.Join(err, fmt.Errorf("the name of the reconciler of %s is not known, because there is no other component and no Lease %s: name it with --reconciler", t, t.Group))
}

// printManifest prints a component as YAML.
func (a *adoption) printManifest(manifest *unstructured.Unstructured) error {
	annotations := manifest.GetAnnotations()
	delete(annotations, a.reconciler+"/"+vocabulary.AnnotationSuspend)
	manifest.SetAnnotations(annotations)
	text, err := yaml.Marshal(manifest.Object)
	if err != nil {
		return err
	}
	_, err = a.Out.Write(text)
	return err
}

// planned asks the operator what it would do, and prints it. It is an error if that is more than to take ownership.
func (a *adoption) planned(ctx context.Context, created inspect.Component, release *helmrelease.Release) error {
	suspended := goal{text: "seen by its operator", reached: func(c inspect.Component) bool { return c.Status.State == v1alpha1.StateSuspended }}
	waited := a.waitFor(ctx, created, a.wait.timeout, suspended)
	reader, err := a.reader()
	if err != nil {
		return err
	}
	if waited != nil {
		if seen, err := reader.Get(ctx, created.Type, client.ObjectKeyFromObject(created.Object)); err == nil && seen.Status.State == "" {
			return fmt.Errorf("no operator has seen %s: start the one of the reconciler %s, or correct the name with --reconciler; it is that in main.go", created, a.reconciler)
		}
		return waited
	}
	seen, err := reader.Get(ctx, created.Type, client.ObjectKeyFromObject(created.Object))
	if err != nil {
		return err
	}
	if seen.Reconciler != a.reconciler {
		return fmt.Errorf("the name of the reconciler of %s is %s, and not %s: set --reconciler", seen, seen.Reconciler, a.reconciler)
	}
	answer, err := a.ask(ctx, seen, preview.Question{})
	if err != nil {
		return err
	}
	view := planview.View{Operator: seen.Reconciler, Hidden: answer.Hidden}
	if err := json.Unmarshal(answer.Plan, &view.Plan); err != nil {
		return fmt.Errorf("the answer of the operator cannot be read: %w", err)
	}
	if source := view.Plan.Source; source != nil && release.ChartVersion != "" && source.Version != release.ChartVersion {
		fmt.Fprintf(a.ErrOut, "the release has version %s of the chart, and the operator renders version %s\n", release.ChartVersion, source.Version)
	}
	more := append(beyondOwnership(view.Plan.Plan), leftOut(view.Plan.Changes, release)...)
	text := ownershipOnly(seen, view.Plan.Changes)
	if len(more) > 0 {
		if text, err = view.Format("text"); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(a.Out, sentence.Printable(text)); err != nil {
		return err
	}
	if len(more) > 0 {
		return fmt.Errorf("more than the ownership would change: %s; make the values or the version of the chart the same as those of the release", strings.Join(more, "; "))
	}
	return nil
}

// ownershipOnly is a plan that makes objects dependents of the component, and changes nothing else.
func ownershipOnly(c inspect.Component, changes []report.PlannedChange) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s takes over %d objects, and changes nothing but labels and annotations of theirs:\n", c, len(changes))
	for _, change := range changes {
		fmt.Fprintf(&text, "  %s\n", change.Key)
	}
	return text.String()
}

// leftOut returns the objects of a release that a plan does not take over.
func leftOut(changes []report.PlannedChange, release *helmrelease.Release) []string {
	var left []string
	for _, object := range release.Objects {
		gvk, namespace := object.GroupVersionKind(), cmp.Or(object.GetNamespace(), release.Namespace)
		if !slices.ContainsFunc(changes, func(change report.PlannedChange) bool {
			key := change.Key
			return key.Group == gvk.Group && key.Kind == gvk.Kind && key.Name == object.GetName() && (key.Namespace == "" || key.Namespace == namespace)
		}) {
			left = append(left, fmt.Sprintf("%s %s is an object of the release, and none of the component", gvk.Kind, object.GetName()))
		}
	}
	if len(release.Objects) == 0 {
		left = append(left, "the release has no objects")
	}
	return left
}

// beyondOwnership returns what a plan changes besides labels and annotations of objects that exist, and what it does not know.
func beyondOwnership(plan report.Plan) []string {
	more := slices.Clone(plan.Incomplete)
	if plan.MissingRights != "" {
		more = append(more, "the operator lacks rights")
	}
	for _, wait := range plan.Waiting {
		more = append(more, fmt.Sprintf("%s: %s", wait.Key, wait.Message))
	}
	for _, change := range plan.Changes {
		about := fmt.Sprintf("%s: %s", change.Key, change.Class)
		switch {
		case change.Class != report.ChangeAdopt && change.Message != "":
			more = append(more, about+", "+change.Message)
		case change.Class != report.ChangeAdopt:
			more = append(more, about)
		case change.DependsOnCluster != "":
			more = append(more, about+", but the server could not be asked: "+change.DependsOnCluster)
		case change.MoreFields > 0:
			more = append(more, fmt.Sprintf("%s, with more fields than a plan shows", about))
		default:
			for _, field := range change.Fields {
				if !isMetadata(field.Path, "labels") && !isMetadata(field.Path, "annotations") {
					more = append(more, fmt.Sprintf("%s: %s", change.Key, field.Path))
				}
			}
		}
	}
	return more
}

// isMetadata reports whether a path leads to the labels or the annotations of the object itself.
func isMetadata(path, field string) bool {
	rest, found := strings.CutPrefix(path, "metadata."+field)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// take ends the suspension, and waits until the component is ready. A component that was changed since its plan is not taken on.
func (a *adoption) take(ctx context.Context, created inspect.Component) error {
	end := &steer{frame: a.frame, decide: func(now inspect.Component) (steering.Annotations, string, error) {
		if now.Object.GetGeneration() != created.Object.GetGeneration() {
			return nil, "", fmt.Errorf("%s was changed after its plan, and stays suspended; delete it, or look at its plan and resume it", now)
		}
		return steering.Annotations{vocabulary.AnnotationSuspend: nil}, "", nil
	}}
	if _, _, err := end.annotate(ctx, created); err != nil {
		return err
	}
	return a.waitFor(ctx, created, a.wait.timeout, goal{text: "ready", reached: isReady, begun: func(c inspect.Component) bool { return c.Status.State != v1alpha1.StateSuspended }})
}

// retireRelease deletes the records of the release, or says how.
func (a *adoption) retireRelease(ctx context.Context, c *connection, r helmrelease.Reference) error {
	if !a.retire {
		fmt.Fprintf(a.Out, "\"helm uninstall\" would still delete its objects. This command deletes its records, and nothing else:\n"+
			"  kubectl -n %s delete secret,configmap -l owner=helm,name=%s\n", r.Namespace, r.Name)
		return nil
	}
	records, err := helmrelease.Records(ctx, c.client, r.Namespace, r.Name, "Secret", "ConfigMap")
	if err != nil {
		return err
	}
	for _, record := range records { // one that is made after this list is not deleted
		if revision := helmrelease.RevisionOf(record); revision > r.Revision {
			return fmt.Errorf("Helm has made revision %d of %s meanwhile, so its records stay: look at the component with corbel diff, and delete them then", revision, r.Title())
		}
	}
	for _, record := range records {
		uid := record.UID
		if err := c.client.Delete(ctx, &record, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the record %s of %s: %w", record.Name, r.Title(), err)
		}
	}
	fmt.Fprintf(a.Out, "the records of %s are deleted: %d\n", r.Title(), len(records))
	return nil
}

// specSchemaOf returns the schema of the spec of a type.
func specSchemaOf(ctx context.Context, c client.Reader, t inspect.Type) (apiextensionsv1.JSONSchemaProps, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	if err := c.Get(ctx, client.ObjectKey{Name: t.String()}, object); err != nil {
		if apierrors.IsNotFound(err) {
			return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("%s is defined by no CustomResourceDefinition", t)
		}
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("read the definition of %s: %w", t, err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, definition); err != nil {
		return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("the definition of %s: %w", t, err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == t.Version && version.Schema != nil && version.Schema.OpenAPIV3Schema != nil {
			return version.Schema.OpenAPIV3Schema.Properties["spec"], nil
		}
	}
	return apiextensionsv1.JSONSchemaProps{}, fmt.Errorf("the definition of %s has no schema of version %s", t, t.Version)
}
