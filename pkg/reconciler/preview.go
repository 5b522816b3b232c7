// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/rights"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// Plan returns everything that Apply would do, called again and again until it is done, and why.
// Nothing is written: the server is asked about each changed object by a dry run. That is one
// request for each of them, and one list or a few reads for each type; a namespace or type that is
// deleted is also searched for objects of other owners. The plan contains no value of a Secret.
// Errors are like those of Apply.
func (r *Reconciler) Plan(ctx context.Context, request ApplyRequest) (report.Plan, error) {
	ctx = confidential.Start(ctx, request.Confidential || request.Desired.isConfidential())
	in, err := r.applyInput(ctx, request)
	if err != nil {
		return report.Plan{}, err
	}
	return r.preview(ctx, in)
}

// ManifestDigest returns the Outcome.ManifestDigest that Apply would return.
func (r *Reconciler) ManifestDigest(ctx context.Context, request ApplyRequest) (string, error) {
	in, err := r.applyInput(confidential.Start(ctx, request.Confidential), request)
	return in.manifest, err
}

// PlanDeletion is Plan for Delete.
func (r *Reconciler) PlanDeletion(ctx context.Context, request DeleteRequest) (report.Plan, error) {
	ctx = confidential.Start(ctx, request.Confidential)
	in, err := r.deleteInput(ctx, request)
	if err == nil {
		err = r.addHooks(ctx, &in, request)
	}
	if err != nil {
		return report.Plan{}, err
	}
	return r.preview(ctx, in)
}

func (r *Reconciler) preview(ctx context.Context, in input) (report.Plan, error) {
	preview := r.executor.NewPreview()
	p := &previewing{
		reconciler: r, call: newCall(in), preview: preview, observer: preview.Observer(),
		asked: map[plan.Attempt]answered{}, assumed: map[plan.Key]plan.Observation{},
	}
	forecast, err := p.forecast(ctx)
	if err != nil {
		return report.Plan{}, err
	}
	result := p.plan(ctx, forecast)
	result.MissingRights = rights.Aggregate(p.call.missing).String()
	return result, nil
}

type previewing struct {
	reconciler *Reconciler
	call       *call
	preview    *execute.Preview
	observer   *observe.Observer
	asked      map[plan.Attempt]answered
	// assumed are the objects of creations that the server cannot be asked about.
	assumed map[plan.Key]plan.Observation
	// refused are the changes of shared types that the server refuses, or that break objects.
	refused []report.PlannedChange
	// created are the objects that the forecast creates.
	created map[plan.Key]bool
}

type answered struct {
	plan.Answer
	live, answer *unstructured.Unstructured
	// refused: the server refused the step, and not a guard or a missing right.
	refused          bool
	dependsOnCluster string
	// removes are fields that a request removes about which the server could not be asked.
	removes []string
}

// maxRounds bounds how often the server is asked. More than three are needed only if objects
// change all the time.
const maxRounds = 20

// forecast asks the server about the steps of a forecast, and makes a new one with the
// answers, until there are no questions.
func (p *previewing) forecast(ctx context.Context) (plan.Forecast, error) {
	in := &p.call.in.Input
	if err := p.foresee(ctx); err != nil {
		return plan.Forecast{}, err
	}
	if err := p.look(ctx, keysOf(*in), readMode{assumeAbsent: mayAssumeAbsent(*in)}, true); err != nil {
		return plan.Forecast{}, err
	}
	r := p.reconciler
	in.Now = r.settings.Now()
	in.Conflicts = r.history.conflicts(in.Owner.Ref, in.Now)
	in.AwaitedBy = r.handovers.waitedFor(in.Owner.Ref, in.Now)
	for range maxRounds {
		forecast, err := plan.NewForecast(*in, func(step plan.ForecastStep) plan.Answer { return p.answer(ctx, step) })
		if err != nil {
			return plan.Forecast{}, fmt.Errorf("plan: %w", err)
		}
		questions, removed := p.questions(forecast)
		if len(questions) == 0 {
			return forecast, nil
		}
		var again []plan.Key
		for _, previewed := range p.preview.Ask(ctx, questions, removed) {
			again = append(again, p.take(ctx, previewed, forecast)...)
		}
		if err := ctx.Err(); err != nil {
			return plan.Forecast{}, err
		}
		if p.call.unavailable {
			return plan.Forecast{}, p.call.failures()
		}
		for _, key := range again {
			p.preview.Forget(key)
		}
		if err := p.look(ctx, again, readMode{force: true}, false); err != nil {
			return plan.Forecast{}, err
		}
	}
	return plan.Forecast{}, fmt.Errorf("objects of %s change all the time, so that no plan holds; try again", p.call.in.Owner.Ref.Title())
}

// look observes objects, and the namespaces that are needed.
func (p *previewing) look(ctx context.Context, keys []plan.Key, how readMode, list bool) error {
	in := &p.call.in.Input
	if list {
		p.preview.List(ctx, in.Owner, requestsFor(*in, keys, how))
	}
	if err := p.reconciler.observe(ctx, p.observer, in, keys, how); err != nil {
		return err
	}
	p.call.noteOrphans(keys)
	return p.reconciler.observe(ctx, p.observer, in, plan.Namespaces(in.Desired, in.Live), readMode{})
}

func (p *previewing) answer(ctx context.Context, step plan.ForecastStep) plan.Answer {
	if known, ok := p.asked[step.Attempt()]; ok && step.First {
		return known.Answer
	}
	if step.Verb != plan.VerbCreate {
		return plan.Answer{}
	}
	live, known := p.assumed[step.Key]
	if !known {
		live = p.preview.Assume(ctx, step.Step)
		p.assumed[step.Key] = live
	}
	return plan.Answer{Observation: live}
}

// questions returns the steps of the forecast that the server is to be asked about, and the objects
// that are removed by then. Guards come last, because their findings depend on other steps.
func (p *previewing) questions(forecast plan.Forecast) (questions []plan.Step, removed map[types.UID]bool) {
	p.created, removed = map[plan.Key]bool{}, map[types.UID]bool{}
	var guarded []plan.Step
	for _, batch := range forecast.Batches {
		for _, step := range batch.Steps {
			if step.Verb == plan.VerbCreate {
				p.created[step.Key] = true
			}
			if step.Verb == plan.VerbDelete && step.Failure == nil && !step.Orphaned {
				removed[step.UID] = true
			}
			if _, known := p.asked[step.Attempt()]; known || !step.First || p.needsPlan(step.Step) != "" {
				continue
			}
			if step.Guard != plan.GuardNone {
				guarded = append(guarded, step.Step)
			} else {
				questions = append(questions, step.Step)
			}
		}
	}
	if len(questions) == 0 {
		questions = guarded
	}
	return questions, removed
}

// needsPlan returns why the server cannot be asked about a step before other steps are done; empty
// if it can.
func (p *previewing) needsPlan(step plan.Step) string {
	if step.Verb != plan.VerbCreate {
		return ""
	}
	if namespace := (plan.Key{Kind: "Namespace", Name: step.Key.Namespace}); p.created[namespace] {
		return "its namespace does not exist yet"
	}
	if p.call.in.Live[step.Key].NotServed {
		return "its type is not served yet"
	}
	return ""
}

// take stores the server's answer to a step, and returns the objects that have to be read before it
// can be understood.
func (p *previewing) take(ctx context.Context, previewed execute.Previewed, forecast plan.Forecast) (again []plan.Key) {
	c, result := p.call, previewed.Result
	step, key, err := result.Step, result.Step.Key, result.Err
	known := answered{answer: previewed.Answer, live: p.preview.Live(ctx, step)}
	known.Orphaned = result.Orphaned
	for _, note := range result.Notes {
		c.addNote(note)
	}
	if previewed.Partial {
		known.dependsOnCluster = "it takes several requests, and the server can be asked about the first one only"
		if n := len(previewed.Removes); n > 0 {
			known.removes = previewed.Removes
			known.dependsOnCluster += "; a later one removes " + strings.Join(known.removes[:min(n, maxPlannedFields)], ", ")
		}
	}
	c.addRefusal(step, err)
	switch {
	case result.Blocked != "":
		known.Failure = &plan.Failure{Blocked: true, Message: result.Blocked, BlockingTypes: result.BlockingTypes}
	case err == nil:
		known.Observation = p.reconciler.withSeal(step.Owner, key, result.Observation)
	case execute.IsUnavailable(err):
		c.unavailable, c.errs[key] = true, err
		return nil
	case execute.IsConflict(err) && c.looks[key] < maxLooks, c.in.Live[key].Existence == plan.NotFetched:
		c.looks[key]++
		return []plan.Key{key}
	case execute.IsNamespaceGone(err) && c.looks[key] < maxLooks:
		c.looks[key]++
		return []plan.Key{key, {Kind: "Namespace", Name: key.Namespace}}
	case strings.Contains(execute.AnswerOf(err), "does not support dry run"):
		known.dependsOnCluster = "an admission webhook cannot be asked: " + err.Error()
	default:
		if missing, ok := p.missingIn(err, step); ok {
			known.dependsOnCluster = "the server accepts it only if " + missing.String() + " exists, which does not exist yet"
			break
		}
		failure := execute.FailureOf(err)
		known.Failure = &failure
		known.refused = !(execute.IsForbidden(err) && strings.Contains(execute.AnswerOf(err), `User "`))
	}
	p.asked[step.Attempt()] = known
	return nil
}

// missingIn returns an object that the plan creates and that is missing according to the server's
// refusal: `serviceaccount "api" not found`.
func (p *previewing) missingIn(err error, step plan.Step) (plan.Key, bool) {
	for key := range p.created {
		kind := strings.ToLower(key.Kind)
		for _, name := range []string{kind, kind + "s"} {
			if key != step.Key && strings.Contains(execute.AnswerOf(err), name+` "`+key.Name+`" not found`) {
				return key, true
			}
		}
	}
	return plan.Key{}, false
}

func (p *previewing) plan(ctx context.Context, forecast plan.Forecast) report.Plan {
	result := report.Plan{Version: report.PlanVersion, Changes: append([]report.PlannedChange{}, p.refused...)}
	recreated := map[plan.Key]bool{}
	for _, batch := range forecast.Batches {
		for _, step := range batch.Steps {
			recreated[step.Key] = recreated[step.Key] || step.Verb == plan.VerbDelete && step.Reason == plan.ReasonRecreate
		}
	}
	number := 0
	until := func(waiting []plan.Wait) {
		for _, wait := range waiting {
			result.Until = append(result.Until, report.PlannedWait{Batch: number + 1, Wait: wait})
		}
	}
	for _, batch := range forecast.Batches {
		until(batch.After)
		var changes []report.PlannedChange
		stage, last := 0, -1
		for _, step := range batch.Steps {
			// A refusal that leads to a recreation, and the question before it, are no writes.
			if step.Verb == plan.VerbDryRun && step.Failure == nil || step.Failure != nil && step.Failure.Immutable && recreated[step.Key] {
				continue
			}
			if step.Stage != last {
				stage, last = stage+1, step.Stage
			}
			changes = append(changes, p.change(ctx, step, number+1, stage))
		}
		if len(changes) > 0 {
			number++
			result.Changes = append(result.Changes, changes...)
		}
	}
	until(forecast.After)
	for _, wait := range forecast.Waiting {
		if wait.Reason != report.WaitConflict {
			wait.Until = time.Time{} // it depends on when the plan is made
		}
		result.Waiting = append(result.Waiting, wait)
		switch wait.Reason {
		case report.WaitOwner, report.WaitForbidden:
			p.call.addForbiddenRead(wait)
			result.Changes = append(result.Changes, report.PlannedChange{
				Key: wait.Key, APIVersion: p.call.typeOf(wait.Key).GroupVersion().String(), Class: report.ChangeBlocked, Reason: string(wait.Reason), Message: wait.Message,
			})
		case report.WaitUnknown, report.WaitType:
			result.Incomplete = append(result.Incomplete, wait.Key.String()+": "+wait.Message)
		}
	}
	for _, note := range forecast.Notes {
		p.call.addNote(note)
	}
	result.Notes, result.Drifted = p.call.notes, forecast.Deviations
	result.Sort()
	return result
}

// classes are the classes of steps that the server accepts, by verb.
var classes = map[plan.Verb]report.ChangeClass{
	plan.VerbCreate: report.ChangeCreate, plan.VerbReplace: report.ChangeUpdate, plan.VerbMerge: report.ChangeUpdate, plan.VerbOverride: report.ChangeUpdate,
	plan.VerbMark: report.ChangeUpdate, plan.VerbDelete: report.ChangeDelete, plan.VerbOrphan: report.ChangeOrphan,
}

func (p *previewing) change(ctx context.Context, step plan.ForecastStep, batch, stage int) report.PlannedChange {
	change := report.PlannedChange{
		Key: step.Key, APIVersion: schema.GroupVersion{Group: step.Key.Group, Version: step.Version}.String(),
		Class: classes[step.Verb], Verb: string(step.Verb), Reason: string(step.Reason), Batch: batch, Stage: stage,
	}
	if step.Desired != nil {
		if change.Hook = step.Desired.Hook; change.Hook == "" && step.Desired.Policies.RunOn != policy.RunOnApply {
			change.Hook = string(step.Desired.Policies.RunOn)
		}
	}
	known, asked := p.asked[step.Attempt()]
	asked = asked && step.First
	if asked {
		change.DependsOnCluster = known.dependsOnCluster
	} else if change.DependsOnCluster = p.needsPlan(step.Step); change.DependsOnCluster == "" && step.Desired != nil && step.Verb != plan.VerbDelete {
		change.DependsOnCluster = "other steps change the object before"
	}
	switch {
	case step.Failure != nil && asked && known.refused:
		change.Class, change.Message = report.ChangeRefused, step.Failure.Message
		return change
	case step.Failure != nil:
		change.Class, change.Message = report.ChangeBlocked, step.Failure.Message
		return change
	case step.Reason == plan.ReasonRecreate && (step.Verb == plan.VerbCreate || step.Verb == plan.VerbDelete):
		change.Class = report.ChangeRecreate
		if step.Verb == plan.VerbCreate {
			change.DependsOnCluster = ""
		}
	case step.Reason == plan.ReasonAdopted:
		change.Class = report.ChangeAdopt
	case step.Orphaned:
		change.Class, change.Verb = report.ChangeOrphan, string(plan.VerbOrphan)
	}
	change.Destructive = change.Verb == string(plan.VerbDelete)
	if isUpdate := change.Class == report.ChangeUpdate || change.Class == report.ChangeAdopt; isUpdate && asked && known.live != nil && known.answer != nil {
		change.Fields, change.MoreFields = changedFields(ctx, known.live.Object, known.answer.Object)
		if change.Class == report.ChangeUpdate && restartsPods(known.live.Object, known.answer.Object, known.removes...) {
			change.Class = report.ChangeRestartsPods
		}
		was, _, _ := unstructured.NestedInt64(known.live.Object, "spec", "replicas")
		if is, found, _ := unstructured.NestedInt64(known.answer.Object, "spec", "replicas"); found && is < was {
			p.call.addNote(plan.Note{Key: step.Key, Warning: true, Message: fmt.Sprintf("the number of replicas falls from %d to %d", was, is)})
		}
	}
	return change
}

// changedFields returns the fields that differ between two states of an object, in a confidential reconcile without
// their values.
func changedFields(ctx context.Context, before, after map[string]any) (changes []report.FieldChange, more int) {
	fields, more := difference.Fields(before, after, maxPlannedFields)
	for _, field := range fields {
		if confidential.Is(ctx) {
			field = field.Mask()
			field.Path = confidential.Path(field.Path)
		}
		changes = append(changes, report.FieldChange(field))
	}
	return changes, more
}

// maxPlannedFields is how many fields of an object a plan names.
const maxPlannedFields = 20

// restartsPods reports whether the controller of a workload replaces its pods. The fields that are removed are gone
// from neither of the two.
func restartsPods(before, after map[string]any, removed ...string) bool {
	workload := schema.FromAPIVersionAndKind(fmt.Sprint(after["apiVersion"]), fmt.Sprint(after["kind"]))
	if workload.Group != "apps" || !slices.Contains(workloads, workload.Kind) {
		return false
	}
	if strategy, _, _ := unstructured.NestedString(after, "spec", "updateStrategy", "type"); strategy == "OnDelete" {
		return false
	}
	was, _, _ := unstructured.NestedFieldNoCopy(before, "spec", "template")
	is, _, _ := unstructured.NestedFieldNoCopy(after, "spec", "template")
	return !reflect.DeepEqual(was, is) || slices.ContainsFunc(removed, func(field string) bool { return strings.HasPrefix(field, ".spec.template.") })
}
