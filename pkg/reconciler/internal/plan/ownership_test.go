// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
)

func TestRelate(t *testing.T) {
	restored := theOwner.Ref
	restored.UID = "uid-restored"
	helm, web := []string{"Helm release shop/web"}, Controller{Kind: "Deployment", Name: "web", UID: "uid-web"}
	sapOf := func(id string) Ownership { return Ownership{OwnerID: id, SAPOwner: "c/shop/main"} }
	former := Mark{Reconciler: "store.example.com", OwnerID: theOwner.ID, Ref: theOwner.Ref}
	third, before, copied, stranger := former, former, former, former
	third.Reconciler, before.Ref.UID, copied.Ref, stranger.OwnerID = "third.example.com", "u-earlier", OwnerRef{}, theOther.ID
	marked := func(mark Mark, others ...string) Ownership {
		title := "the mark of " + mark.Reconciler
		if mark.Ref != (OwnerRef{}) {
			title = mark.Ref.Title() + " of " + mark.Reconciler
		}
		return Ownership{OtherOwners: append([]string{title}, others...), Marks: []Mark{mark}}
	}
	withOwner := func(ownership Ownership, owner Owner) Ownership {
		ownership.OwnerID, ownership.Ref = owner.ID, owner.Ref
		return ownership
	}
	tests := []struct {
		name       string
		ownership  Ownership
		recorded   types.UID
		seal       string
		keyless    bool
		shared     string
		adoption   v1alpha1.AdoptionPolicy
		from, also string
		foreign    string // the id under SAP component-operator-runtime
		inherited  bool   // recorded by it
		former     string // the operator that ours replaces
		want       relation
		owner      string
	}{
		{name: "no ownership metadata, never seen", want: unowned},
		{name: "both our label and annotation", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}, want: ours},
		{name: "both our label and annotation, under another uid", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}, recorded: "u0", want: ours},
		{name: "only our label", ownership: Ownership{OwnerID: theOwner.ID}, want: ours},
		{name: "only our annotation", ownership: Ownership{Ref: theOwner.Ref}, want: labelLost},
		{name: "only our annotation, and recorded", ownership: Ownership{Ref: theOwner.Ref}, recorded: "u1", want: labelLost},
		{name: "only our annotation, recorded under another uid", ownership: Ownership{Ref: theOwner.Ref}, recorded: "u0", want: labelLost},
		{name: "no ownership metadata, recorded, and sealed", recorded: "u1", seal: "seal", want: labelLost},
		{name: "no ownership metadata, recorded, but not sealed", recorded: "u1", want: unowned},
		{name: "no ownership metadata, recorded, and sealed for another object or owner", recorded: "u1", seal: "other", want: unowned},
		{name: "no ownership metadata, recorded, and not sealed without a key", recorded: "u1", keyless: true, want: unowned},
		{name: "the annotation of an earlier incarnation, recorded", ownership: Ownership{Ref: theEarlier.Ref}, recorded: "u1", want: unowned},

		{name: "our name, another component uid", ownership: Ownership{OwnerID: theEarlier.ID, Ref: theEarlier.Ref}, want: earlierIncarnation, owner: "an earlier Shop shop/main"},
		{name: "our name and uid, another cluster", ownership: Ownership{OwnerID: "id-elsewhere", Ref: theOwner.Ref}, want: earlierIncarnation, owner: "an earlier Shop shop/main"},
		{name: "our name, another cluster and component uid", ownership: Ownership{OwnerID: "id-elsewhere", Ref: restored}, want: earlierIncarnation, owner: "an earlier Shop shop/main"},

		{name: "label and annotation of another component", ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref}, want: ownedByOther, owner: "Shop shop/other"},
		{name: "label and annotation of another component, recorded and sealed", ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref}, recorded: "u1", seal: "seal", want: ownedByOther, owner: "Shop shop/other"},
		{name: "the label of another component only", ownership: Ownership{OwnerID: theOther.ID}, want: ownedByOther, owner: "the owner with id id-other"},
		{name: "the annotation of another component only", ownership: Ownership{Ref: theOther.Ref}, recorded: "u1", want: ownedByOther, owner: "Shop shop/other"},
		{name: "our label, but the annotation of another component", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOther.Ref}, want: ownedByOther, owner: "Shop shop/other"},

		{name: "the annotation of another tool", ownership: Ownership{OtherOwners: helm}, want: ownedByOther, owner: "Helm release shop/web"},
		{name: "annotations of several tools", ownership: Ownership{OtherOwners: []string{"Helm release shop/web", "Argo CD"}}, want: ownedByOther, owner: "Helm release shop/web and Argo CD"},
		{name: "the annotation of another tool, recorded and sealed", ownership: Ownership{OtherOwners: helm}, recorded: "u1", seal: "seal", want: ownedByOther, owner: "Helm release shop/web"},
		{name: "a controller", ownership: Ownership{Controller: web}, want: ownedByOther, owner: "its controller Deployment web"},
		{name: "a controller, recorded", ownership: Ownership{Controller: web}, recorded: "u1", want: ownedByOther, owner: "its controller Deployment web"},
		{name: "a controller, and sealed", ownership: Ownership{Controller: web}, recorded: "u1", seal: "seal", want: labelLost},
		{name: "a controller, and our annotation", ownership: Ownership{Ref: theOwner.Ref, Controller: web}, want: labelLost},
		{name: "a controller, and our label and annotation", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, Controller: web}, want: ours},
		{name: "a shared type", shared: "abc 1.0.0", want: ownedByOther, owner: "all components of the operator, which share it"},
		{name: "a shared type, recorded and sealed", shared: "abc 1.0.0", recorded: "u1", seal: "seal", want: ownedByOther, owner: "all components of the operator, which share it"},
		{name: "a shared type with our label and annotation", shared: "abc 1.0.0", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}, want: ownedByOther, owner: "all components of the operator, which share it"},
		{name: "ourselves as the controller", ownership: Ownership{Controller: Controller{Kind: "Shop", Name: "main", UID: theOwner.Ref.UID}}, want: unowned},
		{name: "our label and annotation and that of another tool", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, OtherOwners: helm}, want: ownedByOther, owner: "Helm release shop/web"},
		{name: "our label and annotation and that of another tool, adopted with always", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, OtherOwners: helm}, adoption: v1alpha1.AdoptionPolicyAlways, want: ours},
		{name: "our label and annotation and that of the tool that we adopt from", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, OtherOwners: helm}, from: "Helm release shop/web", want: ours},
		{name: "our label and annotation and that of another release", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, OtherOwners: helm}, from: "Helm release shop/web2", want: ownedByOther, owner: "Helm release shop/web"},
		{name: "our label and annotation and those of several tools", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, OtherOwners: []string{"Helm release shop/web", "Argo CD"}}, from: "Helm release shop/web", want: ownedByOther, owner: "Helm release shop/web and Argo CD"},
		{name: "our label and annotation and those of both tools that we adopt from", ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, OtherOwners: []string{"Helm release shop/web", "Flux HelmRelease shop/web"}}, from: "Helm release shop/web", also: "Flux HelmRelease shop/web", want: ours},
		{name: "an earlier incarnation and another tool", ownership: Ownership{OwnerID: theEarlier.ID, Ref: theEarlier.Ref, OtherOwners: helm}, want: ownedByOther, owner: "Helm release shop/web"},
		{name: "SAP's label, and its record", foreign: "id-foreign", inherited: true, ownership: sapOf("id-foreign"), want: inherited, owner: "Shop shop/main under SAP component-operator-runtime"},
		{name: "SAP's label alone", foreign: "id-foreign", ownership: sapOf("id-foreign"), want: ownedByOther, owner: "c/shop/main of SAP component-operator-runtime"},
		{name: "SAP's record alone", foreign: "id-foreign", inherited: true, want: unowned},
		{name: "SAP's label of another one", foreign: "id-foreign", inherited: true, ownership: sapOf("id-other"), want: ownedByOther, owner: "c/shop/main of SAP component-operator-runtime"},
		{name: "SAP's label, and the annotation of another one of us", foreign: "id-foreign", inherited: true, ownership: Ownership{OwnerID: "id-foreign", Ref: theOther.Ref}, want: ownedByOther, owner: theOther.Ref.Title()},
		{name: "SAP's label, and another tool", foreign: "id-foreign", inherited: true, ownership: Ownership{OwnerID: "id-foreign", OtherOwners: []string{"Argo CD application a"}}, want: ownedByOther, owner: "Argo CD application a"},
		{name: "SAP's record of an operator that inherits nothing", inherited: true, want: unowned},
		{name: "inherited from SAP before a crash", foreign: "id-foreign", inherited: true, ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref}, want: ours},

		{name: "the former operator", former: former.Reconciler, ownership: marked(former), want: inherited, owner: "Shop shop/main of store.example.com"},
		{name: "another operator, and none is followed", ownership: marked(former), want: ownedByOther, owner: "Shop shop/main of store.example.com"},
		{name: "a third operator", former: former.Reconciler, ownership: marked(third), want: ownedByOther, owner: "Shop shop/main of third.example.com"},
		{name: "the former operator, an earlier component", former: former.Reconciler, ownership: marked(before), want: ownedByOther, owner: "Shop shop/main of store.example.com"},
		{name: "the label of the former operator only", former: former.Reconciler, ownership: marked(copied), want: ownedByOther, owner: "the mark of store.example.com"},
		{name: "the former operator, a component elsewhere", former: former.Reconciler, ownership: marked(stranger), want: ownedByOther, owner: "Shop shop/main of store.example.com"},
		{name: "the former operator, and another tool", former: former.Reconciler, ownership: marked(former, helm...), want: ownedByOther, owner: "Shop shop/main of store.example.com and Helm release shop/web"},
		{name: "the former operator, and another component of ours", former: former.Reconciler, ownership: withOwner(marked(former), theOther), want: ownedByOther, owner: "Shop shop/main of store.example.com"},
		{name: "it was written, and still has the mark of the former operator", former: former.Reconciler, ownership: withOwner(marked(former), theOwner), want: ours},

		{name: "another component and another tool, always", ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref, OtherOwners: helm}, adoption: v1alpha1.AdoptionPolicyAlways, want: ownedByOther, owner: "Helm release shop/web"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			live := Observation{Existence: Present, UID: "u1", Ownership: test.ownership, Seal: "seal", Shared: test.shared}
			if test.keyless {
				live.Seal = ""
			}
			adoption := test.adoption
			if adoption == "" {
				adoption = v1alpha1.AdoptionPolicyIfUnowned
			}
			me := theOwner
			me.SAPOwnerID, me.Former = test.foreign, test.former
			item := v1alpha1.InventoryItem{UID: test.recorded, Seal: test.seal, Inherited: test.inherited}
			got, owner := relate(me, item, policy.Set{Adoption: adoption, AdoptFrom: []string{test.from, test.also}}, live)
			if got != test.want || owner != test.owner {
				t.Errorf("got relation %d, owner %q; want %d, %q", got, owner, test.want, test.owner)
			}
		})
	}
}

func TestAnObjectIsTakenOnlyFromTheOwnerThatIsNamed(t *testing.T) {
	const release = "Helm release shop/web"
	alone := Ownership{OtherOwners: []string{release}}
	with := func(change func(*Ownership)) Ownership {
		changed := alone
		change(&changed)
		return changed
	}
	tests := []struct {
		name      string
		ownership Ownership
		from      string
		want      bool
	}{
		{"the release", alone, release, true},
		{"no release is adopted", alone, "", false},
		{"a release with a similar name", alone, release + "-2", false},
		{"also another tool", with(func(o *Ownership) { o.OtherOwners = []string{release, "Argo CD application web"} }), release, false},
		{"also another component", with(func(o *Ownership) { o.OwnerID, o.Ref = theOther.ID, theOther.Ref }), release, false},
		{"also the label of another component", with(func(o *Ownership) { o.OwnerID = theOther.ID }), release, false},
		{"also a controller", with(func(o *Ownership) { o.Controller = Controller{Kind: "Deployment", Name: "web", UID: "d"} }), release, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, adoption := range []v1alpha1.AdoptionPolicy{v1alpha1.AdoptionPolicyIfUnowned, v1alpha1.AdoptionPolicyNever, v1alpha1.AdoptionPolicyIgnore} {
				policies := defaultPolicies()
				policies.Adoption, policies.AdoptFrom = adoption, []string{test.from}
				live := Observation{Existence: Present, UID: "u1", Ownership: test.ownership}
				u := &unit{desired: &Desired{Policies: policies}, live: live}
				u.relation, u.otherOwner = relate(theOwner, v1alpha1.InventoryItem{}, policies, live)
				check.SameNamed(t, "may be adopted under "+string(adoption), test.want, u.mayAdopt())
			}
		})
	}
}

func TestWhatIsIgnoredIsNotCounted(t *testing.T) {
	foreign, own := Key{Kind: "ConfigMap", Namespace: "shop", Name: "foreign"}, Key{Kind: "ConfigMap", Namespace: "shop", Name: "own"}
	ignore := defaultPolicies()
	ignore.Adoption = v1alpha1.AdoptionPolicyIgnore
	p := check.Must(Next(Input{
		Name: reconcilerName, Owner: theOwner,
		Desired: []Desired{{Key: foreign, Version: "v1", Policies: ignore, Digest: "d"}, {Key: own, Version: "v1", Policies: ignore, Digest: "d"}},
		Live:    map[Key]Observation{foreign: {Existence: Present, UID: "u1"}, own: {Existence: Absent}},
	}))(t)
	if p.Total != 1 || p.Settled != 0 || !slices.Equal(p.Ignored, []Key{foreign}) {
		t.Errorf("%d of %d objects are settled, and %v are ignored", p.Settled, p.Total, p.Ignored)
	}
}

// To adopt what another component of the same reconciler has would only exchange which of the two is refused.
func TestNoObjectOfAnotherComponentIsToBeAdopted(t *testing.T) {
	const always, policyIs = "the annotation corbel.example.com/adoption-policy: always in its manifest adopts it", " and the adoption policy is if-unowned; "
	const rename = "Shop shop/other, which is another component of this operator: give the object a name that differs by component, or have one component only"
	role := Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"}
	definition := Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "foos.example.com"}
	api := Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.example.com"}
	const shared = "belongs to all components of the operator, which share it, and the content that this component renders is another one: " +
		"remove what changes it for this component, such as a patch"
	helm := []string{"Helm release shop/web"}
	original, of := theOwner.Ref, "Shop live/main, which is another component of this operator: "
	original.Namespace, original.UID = "live", "uid-live"
	tests := []struct {
		name      string
		key       Key
		ownership Ownership
		shared    string
		adoption  v1alpha1.AdoptionPolicy // if-unowned, if it is empty
		from      string
		want      string
	}{
		{name: "another component", key: role, ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref}, want: "belongs to " + rename},
		{name: "another component that has lost its label", key: role, ownership: Ownership{Ref: theOther.Ref}, want: "belongs to " + rename},
		{name: "an API", key: api, ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref}, want: "belongs to " + rename},
		{name: "another component and a release", key: role, ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref, OtherOwners: helm}, want: "belongs to Helm release shop/web and to " + rename},
		{name: "another component and the release that is taken over", key: role, ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref, OtherOwners: helm}, from: helm[0], want: "belongs to Helm release shop/web and to " + rename},
		{name: "a definition", key: definition, ownership: Ownership{OwnerID: theOther.ID, Ref: theOther.Ref},
			want: "belongs to Shop shop/other, which is another component of this operator: components share a definition that is in the folder crds of a chart, or that the option SharedTypes names"},
		{name: "a definition of a release", key: definition, ownership: Ownership{OtherOwners: helm}, want: "belongs to Helm release shop/web" + policyIs + always},
		{name: "a release", key: role, ownership: Ownership{OtherOwners: helm}, want: "belongs to Helm release shop/web" + policyIs + always},
		{name: "a release, and we", key: role, ownership: Ownership{OwnerID: theOwner.ID, Ref: theOwner.Ref, OtherOwners: helm}, want: "belongs to Helm release shop/web" + policyIs + always},
		{name: "a release, and we before", key: role, ownership: Ownership{OwnerID: theEarlier.ID, Ref: theEarlier.Ref, OtherOwners: helm}, want: "belongs to Helm release shop/web" + policyIs + always},
		{name: "the same component elsewhere, and a release", key: role, ownership: Ownership{OwnerID: "id-elsewhere", Ref: theOwner.Ref, OtherOwners: helm}, want: "belongs to Helm release shop/web" + policyIs + always},
		{name: "only a label", key: role, ownership: Ownership{OwnerID: theOther.ID}, want: "belongs to the owner with id id-other" + policyIs + always},
		{name: "only a label, and the release that is taken over", key: role, ownership: Ownership{OwnerID: theOther.ID, OtherOwners: helm}, from: helm[0], want: "belongs to Helm release shop/web and to the owner with id id-other" + policyIs + always},
		{name: "SAP component-operator-runtime", key: role, ownership: Ownership{OwnerID: theOther.ID, SAPOwner: "c/shop/other"}, want: "belongs to c/shop/other of SAP component-operator-runtime" + policyIs + always},
		{name: "the original, of an object that was restored", key: Key{Kind: "Secret", Namespace: "shop", Name: "a"}, ownership: Ownership{OwnerID: "id-live", Ref: original},
			want: "belongs to " + of + `if the object was restored with this component, "corbel adopt restored shop.example.com/main -n shop" makes it an object of this component`},
		{name: "the original, of an object elsewhere", key: Key{Kind: "Secret", Namespace: "live", Name: "a"}, ownership: Ownership{OwnerID: "id-live", Ref: original},
			want: "belongs to " + of + "give the object a name that differs by component, or have one component only"},
		{name: "the original, of an object without a namespace", key: role, ownership: Ownership{OwnerID: "id-live", Ref: original},
			want: "belongs to " + of + "give the object a name that differs by component, or have one component only"},
		{name: "a shared definition", key: definition, shared: "abc 1.0.0", want: shared},
		{name: "a shared definition, always", key: definition, shared: "abc 1.0.0", adoption: v1alpha1.AdoptionPolicyAlways, want: shared},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			desired := Desired{Key: test.key, Version: "v1", Policies: defaultPolicies(), Digest: "d"}
			if test.adoption != "" {
				desired.Policies.Adoption = test.adoption
			}
			if test.from != "" {
				desired.Policies.AdoptFrom = []string{test.from}
			}
			if test.key.Kind != "ClusterRole" {
				desired.Defines = []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}
			}
			p, err := Next(Input{Name: reconcilerName, Owner: theOwner, Desired: []Desired{desired}, Live: map[Key]Observation{
				test.key: {Existence: Present, UID: "u1", ResourceVersion: "7", Ownership: test.ownership, Shared: test.shared, Status: Status{Readiness: Ready}},
			}})
			if err != nil || len(p.Steps) > 0 || len(p.Waiting) != 1 || p.Waiting[0].Reason != report.WaitOwner {
				t.Fatalf("got %v, %v", p, err)
			}
			if got := p.Waiting[0].Message; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestOwnerRefsSurviveTheirText(t *testing.T) {
	for _, ref := range []OwnerRef{
		theOwner.Ref,
		{Kind: "ConfigMap", Namespace: "shop", Name: "release", UID: "1"},
		{Group: "example.com", Kind: "Tenant", Name: "cluster-scoped", UID: "1"},
		{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "main"},
	} {
		got, ok := ParseOwnerRef(ref.String())
		if !ok || got != ref {
			t.Errorf("%q: got %+v, %t; want %+v", ref.String(), got, ok, ref)
		}
	}
}

func TestParseOwnerRefRefusesWhatIsNoOwner(t *testing.T) {
	for _, text := range []string{
		"", "/", "main", "shop/main", "////", "example.com//shop/main/uid", "example.com/Shop/shop//uid",
		"example.com/Shop/shop/main", "example.com/Shop/shop/main/uid/more",
	} {
		if ref, ok := ParseOwnerRef(text); ok || ref != (OwnerRef{}) {
			t.Errorf("%q: got %+v, %t", text, ref, ok)
		}
	}
}

// The record of a release may be forged: a label that it tells of proves nothing of another namespace.
func TestAnOwnerBesideProvesNothingAlone(t *testing.T) {
	policies := policy.Set{AdoptFrom: []string{"Helm release market/corner"}, AdoptBeside: "Flux HelmRelease flux-system/corner"}
	for owners, want := range map[string]bool{
		"": false, "Helm release market/corner": true, "Helm release market/corner,Flux HelmRelease flux-system/corner": true,
		"Flux HelmRelease flux-system/corner": false, "Helm release market/corner,Flux HelmRelease flux-system/other": false,
	} {
		ownership := Ownership{}
		if owners != "" {
			ownership.OtherOwners = strings.Split(owners, ",")
		}
		check.SameNamed(t, owners, want, ownership.mayAdoptFromAll(policies))
	}
}

// An object that cannot be read is not forgotten, although the record has no uid of it.
func TestAnInheritedObjectThatCannotBeReadStaysOnRecord(t *testing.T) {
	me := theOwner
	me.SAPOwnerID = "id-foreign"
	item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", Digest: v1alpha1.UnknownManifest, Inherited: true}
	for _, cause := range []Cause{Applying, Deleting} {
		p, err := Next(Input{Cause: cause, Name: "shop.example.com", Owner: me, Recorded: []v1alpha1.InventoryItem{item}, Now: time.Now()})
		if err != nil || len(p.Steps) > 0 || len(p.Waiting) != 1 || len(p.Inventory) != 1 || !p.Inventory[0].Inherited {
			t.Errorf("%d: %+v, %v", cause, p, err)
		}
	}
}

func TestAFinalizerOfSAPsRuntimeIsOneOfATypeWithTheNameOfTheReconciler(t *testing.T) {
	const name = "shop.example.com"
	definition := Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "shops.example.com"}
	service := Key{Group: "apiregistration.k8s.io", Kind: "APIService", Name: "v1.example.com"}
	for _, test := range []struct {
		key        Key
		finalizers []string
		want       bool
	}{
		{definition, []string{"x.y/z", name}, true},
		{service, []string{name}, true},
		{definition, []string{"customresourcecleanup.apiextensions.k8s.io"}, false},
		{definition, nil, false},
		{Key{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "child"}, []string{name}, false}, // a component of ours
	} {
		if got := HasForeignFinalizer(test.key, name, test.finalizers); got != test.want {
			t.Errorf("%s with %v: %t", test.key, test.finalizers, got)
		}
	}
}
