// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// TestTranscripts plays the stories in testdata. A story is commands and what
// came of them; "go test ./pkg/reconciler/internal/plan -rewrite" accepts what
// comes now, and the difference is for the reviewer. These are the commands:
//
//	new-world              starts anew; there is one namespace, shop
//	desired                sets the desired objects: kind, name, annotations, and value=, which stands for the other fields
//	managed                sets patterns of additional managed types
//	missing-namespaces     sets the policy
//	next                   shows the next plan, and does nothing
//	forecast               shows all plans to come, and does nothing
//	run [crash=N]          makes a reconcile, and stops it before its Nth event (a record or a step)
//	delete                 deletes the component; the next run starts the deletion
//	retain                 lets objects stay that are recorded and not desired
//	skip-hooks             deletes without the objects that run before and after it
//	progress               lets the controllers do their work: objects get ready
//	ready, unready, failed set what objects say about themselves
//	existing               creates objects, with the owner none, other (another component), helm, helm-and-other, helm-elsewhere, controller, or earlier (us, before), and
//	                       automatic= for namespaces that we have created for their content
//	steal, strip           put another owner's label on objects, or remove ours, with all=yes also our annotation
//	control                lets a controller put itself into the ownerReferences of objects
//	drift, remove          edit (as manager by=) and delete objects by hand
//	drift-policy           sets the policy of the component, for all objects
//	adopt-from             names the owner that objects are taken from whatever their adoption policy is
//	conflict               says that another client changes objects again and again: by=, and for=, how long they are not written
//	hold, release          add a finalizer, and remove it
//	watch                  lets the component know objects from a watch from now on
//	late, news             let the watch deliver no events of objects, and deliver them again
//	unknown, known         let reads fail, and succeed again
//	hide, unhide           let reads of the content of namespaces fail, and succeed again
//	refuse, accept, lose   let writes fail, succeed again, and lose the answer to the next write
//	                       a ValidatingWebhookConfiguration with a value such as dead-1 refuses what is written in namespaces
//	clash                  lets creations be refused, because a value is already allocated; so do values such as port-80, for one kind
//	immutable, frozen      let the server refuse to change values, or to write objects in place at all
//	webhook                lets an admission webhook remove our label and annotation from objects
//	rekey                  lets the operator have another digest key than the one that the record was made with
//	clock                  lets time pass
//	inventory, objects     show what is recorded, and what exists
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		d := newDriver()
		datadriven.RunTest(t, path, func(t *testing.T, test *datadriven.TestData) string {
			command, known := commands[test.Cmd]
			if !known {
				test.Fatalf(t, "unknown command %s", test.Cmd)
			}
			lines, err := parseLines(test.Input)
			if err != nil {
				test.Fatalf(t, "%v", err)
			}
			args := make([]string, len(test.CmdArgs))
			for i, arg := range test.CmdArgs {
				args[i] = arg.String()
			}
			output, err := command(d, args, lines)
			if err != nil {
				test.Fatalf(t, "%v", err)
			}
			for _, violation := range d.world.violations {
				t.Errorf("%s: %s", test.Pos, violation)
			}
			return output
		})
	})
}

// command changes the state of a transcript, or shows it.
type command func(d *driver, args []string, lines []line) (string, error)

var commands = map[string]command{
	"new-world":          func(d *driver, _ []string, _ []line) (string, error) { *d = *newDriver(); return "", nil },
	"desired":            desire,
	"managed":            manage,
	"missing-namespaces": missingNamespaces,
	"retain":             retain,
	"next":               next,
	"forecast":           forecast,
	"run":                run,
	"watch":              watchObjects,
	"delete":             func(d *driver, _ []string, _ []line) (string, error) { d.cause = Deleting; return "", nil },
	"timed-out":          func(d *driver, _ []string, _ []line) (string, error) { d.timedOut = true; return "", nil },
	"skip-hooks":         func(d *driver, _ []string, _ []line) (string, error) { d.skipHooks = true; return "", nil },
	"rekey": func(d *driver, _ []string, _ []line) (string, error) {
		d.durable = Rekeyed(d.durable)
		return "", nil
	},
	"progress":     func(d *driver, _ []string, _ []line) (string, error) { d.world.progress(); return "", nil },
	"clock":        clock,
	"inventory":    inventory,
	"objects":      objects,
	"existing":     existing,
	"conflict":     conflict,
	"drift-policy": driftPolicy,
	"adopt-from":   adoptFrom,

	"ready":   each(func(o *object, _ line) { o.status = Status{Readiness: Ready} }),
	"unready": each(func(o *object, _ line) { o.status = Status{Message: "not available"} }),
	"failed":  each(func(o *object, _ line) { o.status = Status{Readiness: Failed, Message: "gave up"} }),
	"steal":   each(func(o *object, l line) { setOwner(o, l.value("by")) }),
	"strip":   each(strip),
	"control": each(func(o *object, _ line) { o.control() }),
	"hold":    each(func(o *object, l line) { o.finalizers = append(o.finalizers, l.value("finalizer")) }),

	"drift": each(func(o *object, l line) {
		if value := l.value("value"); value != "" {
			o.value, o.by, o.changed = value, l.value("by"), startOfTime
		}
		o.extra += l.value("extra")
	}),

	"remove":    all(func(w *world, k Key) { w.remove(w.objects[k]) }),
	"release":   all(func(w *world, k Key) { w.objects[k].finalizers = nil; w.finish() }),
	"late":      all((*world).delay),
	"news":      all(func(w *world, k Key) { delete(w.late, k) }),
	"unknown":   all(func(w *world, k Key) { w.unreadable[k] = "the server is busy" }),
	"known":     all(func(w *world, k Key) { delete(w.unreadable, k) }),
	"hide":      all(func(w *world, k Key) { w.hidden[k] = "widgets.example.com cannot be read" }),
	"unhide":    all(func(w *world, k Key) { delete(w.hidden, k) }),
	"refuse":    all(func(w *world, k Key) { w.refused[k] = "denied by a webhook" }),
	"clash":     all(func(w *world, k Key) { w.clashes[k] = true }),
	"accept":    all(func(w *world, k Key) { delete(w.refused, k); delete(w.clashes, k) }),
	"lose":      all(func(w *world, k Key) { w.lost[k] = true }),
	"immutable": all(func(w *world, k Key) { w.immutable[k] = true }),
	"frozen":    all(func(w *world, k Key) { w.frozen[k] = true }),
	"webhook":   all(func(w *world, k Key) { w.strips[k] = true }),
}

// each makes a command that changes objects.
func each(change func(o *object, l line)) command {
	return func(d *driver, _ []string, lines []line) (string, error) {
		for _, l := range lines {
			o := d.world.objects[l.key]
			if o == nil {
				return "", fmt.Errorf("%s does not exist", l.key)
			}
			change(o, l)
			d.world.touch(o)
		}
		return "", nil
	}
}

// all makes a command that does something about keys.
func all(do func(w *world, k Key)) command {
	return func(d *driver, _ []string, lines []line) (string, error) {
		for _, l := range lines {
			do(d.world, l.key)
		}
		return "", nil
	}
}

func desire(d *driver, _ []string, lines []line) (string, error) {
	d.desired, d.hooks = nil, nil
	for _, l := range lines {
		desired, err := l.desired()
		if err != nil {
			return "", err
		}
		if desired.Policies.RunOn == policy.RunOnApply {
			d.desired = append(d.desired, desired)
		} else {
			d.hooks = append(d.hooks, desired)
		}
	}
	return "", nil
}

func retain(d *driver, _ []string, lines []line) (string, error) {
	d.retain = map[Key]bool{}
	for _, l := range lines {
		d.retain[l.key] = true
	}
	return "", nil
}

func manage(d *driver, args []string, _ []line) (string, error) {
	d.managed = nil
	for _, arg := range args {
		group, kind, _ := strings.Cut(arg, "/")
		d.managed = append(d.managed, v1alpha1.TypeInfo{Group: group, Kind: kind})
	}
	return "", nil
}

func missingNamespaces(d *driver, args []string, _ []line) (string, error) {
	chosen, err := policy.ParseMissingNamespaces(v1alpha1.MissingNamespacesPolicy(strings.Join(args, " ")))
	d.missing = chosen
	return "", err
}

func clock(d *driver, args []string, _ []line) (string, error) {
	step, err := time.ParseDuration(strings.Join(args, " "))
	d.world.now = d.world.now.Add(step)
	return "", err
}

func existing(d *driver, _ []string, lines []line) (string, error) {
	for _, l := range lines {
		if d.world.objects[l.key] != nil {
			return "", fmt.Errorf("%s exists", l.key)
		}
		o := object{key: l.key, value: l.value("value"), defines: l.defines(), automatic: l.value("automatic")}
		setOwner(&o, l.value("owner"))
		d.world.put(o)
	}
	return "", nil
}

// setOwner puts the label and annotation of an owner on an object.
func setOwner(o *object, by string) {
	switch by {
	case "other":
		o.ownership = Ownership{OwnerID: theOther.ID, Ref: theOther.Ref}
	case "helm":
		o.ownership.OtherOwners = append(o.ownership.OtherOwners, "Helm release shop/web")
	case "helm-and-other":
		o.ownership = Ownership{OwnerID: theOther.ID, Ref: theOther.Ref, OtherOwners: []string{"Helm release shop/web"}}
	case "helm-elsewhere":
		o.ownership.OtherOwners = []string{"Helm release other/web"}
	case "controller":
		o.control()
	case "earlier":
		o.ownership = Ownership{OwnerID: theEarlier.ID, Ref: theEarlier.Ref}
	case "us":
		o.ownership = Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}
	}
}

func watchObjects(d *driver, _ []string, _ []line) (string, error) {
	d.watches, d.world.left = true, map[types.UID]Finish{}
	return "", nil
}

func next(d *driver, _ []string, _ []line) (string, error) {
	p, err := Next(d.input())
	if err != nil {
		return "error    " + err.Error() + "\n", nil
	}
	return p.String(), nil
}

func run(d *driver, args []string, _ []line) (string, error) {
	var b strings.Builder
	d.observer = func(p Plan, results []Result) {
		if len(p.Steps) == 0 {
			b.WriteString(p.String())
			return
		}
		// What is waited for while there is work to do is left out.
		p.Waiting = nil
		b.WriteString(p.String())
		if skipped := len(p.Steps) - len(results); skipped > 0 {
			fmt.Fprintf(&b, "skipped  %d steps\n", skipped)
		}
		for _, r := range results {
			switch {
			case r.Err != nil:
				fmt.Fprintf(&b, "failed   %s: %s\n", r.Step.Key, r.Err)
			case r.Orphaned:
				fmt.Fprintf(&b, "released %s\n", r.Step.Key)
			}
		}
	}
	d.events, d.crashAt = 0, 0
	for _, arg := range args {
		if _, err := fmt.Sscanf(arg, "crash=%d", &d.crashAt); err != nil {
			return "", fmt.Errorf("argument %s: %w", arg, err)
		}
	}
	_, err := d.reconcile()
	if errors.Is(err, errCrash) {
		b.WriteString("crash\n")
		return b.String(), nil
	}
	return b.String(), err
}

func inventory(d *driver, _ []string, _ []line) (string, error) {
	var b strings.Builder
	for _, item := range d.durable {
		words := []string{KeyOf(item).String(), string(item.Phase), string(item.UID), string(item.Origin)}
		if item.Digest == "" {
			words = append(words, "about to be applied")
		}
		if IsRekeyed(item) {
			words = append(words, "of another key")
		}
		b.WriteString(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ") + "\n")
	}
	return b.String(), nil
}

func driftPolicy(d *driver, args []string, _ []line) (string, error) {
	chosen, err := policy.ParseDrift(strings.Join(args, " "))
	for i := range d.desired {
		d.desired[i].Policies.Drift = chosen
	}
	return "", err
}

func adoptFrom(d *driver, args []string, _ []line) (string, error) {
	for i := range d.desired {
		d.desired[i].Policies.AdoptFrom = []string{strings.Join(args, " ")}
	}
	return "", nil
}

func conflict(d *driver, _ []string, lines []line) (string, error) {
	d.conflicts = map[Key]Conflict{}
	for _, l := range lines {
		patience, err := time.ParseDuration(l.value("for"))
		if err != nil {
			return "", err
		}
		last := report.Drift{Fields: []string{"value"}, Manager: l.value("by"), Missing: l.value("by") == ""}
		d.conflicts[l.key] = Conflict{Until: d.world.now.Add(patience), Last: last}
	}
	return "", nil
}

func strip(o *object, l line) {
	o.ownership.OwnerID, o.ownership.Ref = "", OwnerRef{}
	o.keyless = l.value("all") != ""
}

// groups are the groups of the kinds that occur in the tests.
var groups = map[string]string{
	"ConfigMap": "", "Secret": "", "Service": "", "ServiceAccount": "", "Namespace": "",
	"Deployment": "apps", "Job": "batch", "ClusterRole": "rbac.authorization.k8s.io",
	"CustomResourceDefinition":       "apiextensions.k8s.io",
	"APIService":                     "apiregistration.k8s.io",
	"ValidatingWebhookConfiguration": "admissionregistration.k8s.io",
	"Foo":                            customGroup, "Bar": customGroup,
}

// keyOf makes a key of a kind and "name" or "namespace/name".
func keyOf(kind, name string) (Key, error) {
	group, known := groups[kind]
	if !known {
		return Key{}, fmt.Errorf("unknown kind %s", kind)
	}
	key := Key{Group: group, Kind: kind, Name: name}
	if namespace, rest, namespaced := strings.Cut(name, "/"); namespaced {
		key.Namespace, key.Name = namespace, rest
	}
	return key, nil
}

// line names an object and says something about it.
type line struct {
	key   Key
	words map[string]string
}

func (l line) value(name string) string { return l.words[name] }

// parseLines reads lines such as "Deployment shop/api value=1 apply-order=2".
func parseLines(text string) ([]line, error) {
	var lines []line
	for row := range strings.Lines(text) {
		fields := strings.Fields(row)
		if len(fields) == 0 {
			continue
		}
		if len(fields) == 1 {
			return nil, fmt.Errorf("%q is not a kind, a name and options", row)
		}
		key, err := keyOf(fields[0], fields[1])
		if err != nil {
			return nil, err
		}
		l := line{key: key, words: map[string]string{}}
		for _, field := range fields[2:] {
			name, value, assigned := strings.Cut(field, "=")
			if !assigned {
				return nil, fmt.Errorf("%q is not an option", field)
			}
			l.words[name] = value
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// desired makes a desired object of a line. The options are annotations, but for
// value, ttl, which says that the object is removed after its end, and defines, which
// names the kind that a definition brings.
func (l line) desired() (Desired, error) {
	annotations := map[string]string{}
	for name, value := range l.words {
		if name != "value" && name != "defines" && name != "ttl" && name != "hook" {
			annotations[reconcilerName+"/"+name] = value
		}
	}
	policies, err := policy.Parse(reconcilerName, annotations, defaultPolicies())
	if err != nil {
		return Desired{}, fmt.Errorf("%s: %w", l.key, err)
	}
	d := desiredObject(l.key, l.value("value"), policies, l.defines()...)
	d.HasTTL = l.value("ttl") != ""
	d.Hook = l.value("hook")
	return d, nil
}

func (l line) defines() []v1alpha1.TypeInfo {
	kind, defines := l.words["defines"]
	if !defines {
		return nil
	}
	return []v1alpha1.TypeInfo{{Group: customGroup, Kind: kind}}
}

// objects shows what exists: the value, what others added, its true owner and what it shows.
func objects(d *driver, _ []string, _ []line) (string, error) {
	var b strings.Builder
	for _, key := range d.world.keys() {
		o := d.world.objects[key]
		if key == namespaceKey("shop") {
			continue
		}
		fmt.Fprintf(&b, "%s %s", key, o.uid)
		for _, word := range []struct{ name, text string }{{"value", o.value}, {"extra", o.extra}, {"owner", o.ownership.OwnerID}, {"others", strings.Join(o.ownership.OtherOwners, ",")}} {
			if word.text != "" {
				fmt.Fprintf(&b, " %s=%s", word.name, word.text)
			}
		}
		if !o.deleting.IsZero() {
			b.WriteString(" terminating")
		}
		b.WriteByte('\n')
	}
	if b.Len() == 0 {
		return "none\n", nil
	}
	return b.String(), nil
}
