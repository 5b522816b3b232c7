// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// One operator and one component serve all of it.
func TestThePageShowsACluster(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() { awaitGoroutines(t, before+20) }) // runs last
	b := openBed(t)
	p := serve(t, b.env.Config(), Options{Write: true, Namespace: shops.Namespace, Context: "the tests"})
	for name, test := range map[string]func(*testing.T, *bed, *browser){"reads": reads, "refuses": refuses} {
		t.Run(name, func(t *testing.T) { test(t, b, p) })
	}
	p.leavesNothing(t) // before there is a stream of which watches are yet to begin
	events := p.listen(about)
	var list fleetList
	check.NoError(t, json.Unmarshal([]byte(p.await(events, "fleet", `"isDown":false`).data), &list))
	if c := list.Items[0]; c.Type != "shops.shop.example.com" || !c.Ready || !c.UpToDate || c.Progress != "15/15" || c.Revision != 1 || c.Reconciler != shops.OperatorName || len(list.Problems) > 0 {
		t.Errorf("components: %+v", list)
	}
	p.await(events, "tree", "corner-web")
	p.seesDrift(b, events)
	p.plansAndGoesBack(b, events)
	p.losesTheServer(b, events)
	p.mu.Lock()
	all := p.all.String()
	p.mu.Unlock()
	for _, value := range []string{shops.Canary, base64.StdEncoding.EncodeToString([]byte(shops.Canary))[:20]} {
		if i := strings.Index(all, value); i >= 0 {
			t.Errorf("the value of a Secret is answered: %.300s", all[max(0, i-200):])
		}
	}
}

func reads(t *testing.T, _ *bed, p *browser) {
	var info struct {
		Context, Namespace string
		Write              bool
	}
	if p.get("api/info", &info); info.Context != "the tests" || info.Namespace != shops.Namespace || !info.Write {
		t.Errorf("info: %+v", info)
	}
	page := &browser{TB: t, url: p.url, client: p.client}
	var shown tree
	check.NoError(t, json.Unmarshal([]byte(page.await(page.listen(about), "tree", "").data), &shown))
	if titles := []string{shown.Stages[0].Title, shown.Stages[1].Title, shown.Stages[2].Title, shown.Stages[3].Title}; fmt.Sprint(titles) != "[shared by all components hooks before wave 0 wave 1]" {
		t.Errorf("stages: %s", titles)
	}
	web := shown.find(t, "apps/Deployment/market/corner-web")
	if web.Message != "2/2" || len(web.Pods) != 2 || web.Pods[0].State != "Running" || !web.Ready {
		t.Errorf("Deployment: %+v", web)
	}
	var cause explanation
	if p.get("api/why"+about, &cause); !cause.Ready || !strings.HasPrefix(cause.Text, "Shop market/corner is Ready") {
		t.Errorf("cause: %+v", cause)
	}
	var happened eventList
	if p.get("api/events"+about, &happened); len(happened.Items) < 10 || happened.Items[0].Object != "Shop market/corner" {
		t.Errorf("events: %+v", happened)
	}
	var known revisionList
	if p.get("api/history"+about, &known); len(known.Items) != 1 || !known.Items[0].Current || known.Items[0].Digest == "" || known.Items[0].SourceText != "helm shop 1.0.0 (1.0)" {
		t.Errorf("history: %+v", known)
	}
}

// find returns a dependent.
func (v tree) find(t testing.TB, key string) dependentSummary {
	t.Helper()
	for _, s := range v.Stages {
		for _, d := range s.Dependents {
			if d.Key == key {
				return d
			}
		}
	}
	t.Fatalf("the tree lacks %s: %+v", key, v)
	return dependentSummary{}
}

func refuses(t *testing.T, b *bed, p *browser) {
	reader := serve(t, b.env.Config(), Options{})
	for _, test := range []struct {
		from               *browser
		method, path, body string
		status             int
		text               string
	}{
		{p, "GET", "api/why?type=shops.shop.example.com&namespace=market&name=none", "", 404, "not found"},
		{p, "GET", "api/why?type=shops.shop.example.com&namespace=default&name=corner", "", 404, "is not shown"},
		{p, "GET", "api/why?type=secrets&namespace=market&name=corner-database", "", 404, "no type of components"},
		{p, "GET", "api/why?name=corner", "", 400, "must name a component"},
		{p, "GET", "api/object" + about + "&object=/Secret/market/corner-database", "", 404, "has no dependent object or pod"},
		{p, "GET", "api/log" + about + "&object=apps/Deployment/market/corner-web", "", 400, "is no pod, and has no log"},
		{p, "GET", "api/log" + about + "&object=/Pod/market/another", "", 404, "has no dependent object or pod"},
		{p, "GET", "api/diff" + about, "", 404, "no such page"},
		{p, "POST", "api/diff" + about, `{"revision":"x"}`, 400, "cannot be read"},
		{p, "POST", "api/diff" + about, `{"revision":7}`, 409, "has no revision 7"},
		{p, "GET", "api/none", "", 404, "no such page"},
		{p, "POST", "api/plan" + about, `{"spec":"a: ["}`, 400, "is no YAML"},
		{p, "POST", "api/plan" + about, `{"spec":"replicas: 1","delete":true}`, 400, "of a spec or of a deletion"},
		{p, "POST", "api/plan" + about, `{"spec":"replicas: -1"}`, 409, "databaseSecret"},
		{p, "POST", "api/plan" + about, `{"unknown":1}`, 400, "cannot be read"},
		{p, "POST", "api/action" + about, `{"action":"dance"}`, 400, "no action"},
		{p, "POST", "api/action" + about, `{"action":"rollback","revision":1}`, 400, `the confirmation must be "shop/corner"`},
		{p, "POST", "api/action" + about, `{"action":"rollback","revision":1,"confirm":"shop/other"}`, 400, "confirmation"},
		{p, "POST", "api/action" + about, `{"action":"rollback","confirm":"shop/corner"}`, 400, "number of a revision"},
		{p, "POST", "api/action" + about, `{"action":"rollback","revision":7,"confirm":"shop/corner"}`, 409, "revision 7 of Shop market/corner is not kept"},
		{p, "POST", "api/action" + about, `{"action":"suspend","uid":"another"}`, 409, "created again meanwhile"},
		{p, "POST", "api/action" + about, `{"action":"end-rollback","confirm":"shop/corner"}`, 409, "not rolled back"},
		{reader, "POST", "api/action" + about, `{"action":"reconcile"}`, 403, "--write"},
	} {
		status, text := test.from.request(test.method, test.path, test.body)
		if status != test.status || !json.Valid([]byte(text)) || !strings.Contains(strings.ReplaceAll(text, `\"`, `"`), test.text) {
			t.Errorf("%s %s %s: %d %s", test.method, test.path, test.body, status, text)
		}
	}
	s := shops.New("corner")
	check.NoError(b, b.client.Get(b.Context(), client.ObjectKeyFromObject(s), s))
	if len(s.Annotations) > 1 { // that of the plan
		t.Errorf("written: %v", s.Annotations)
	}
}

// edit changes an object as a user of kubectl would.
func (b *bed) edit(object client.Object, name, patch string) {
	b.Helper()
	object.SetNamespace(shops.Namespace)
	object.SetName(name)
	check.NoError(b, b.client.Patch(b.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")))
}

// seesDrift changes dependents: also a Secret. Its values are not shown.
func (p *browser) seesDrift(b *bed, events <-chan received) {
	p.Helper()
	b.edit(&corev1.Service{}, "corner-api", `{"spec":{"sessionAffinity":"ClientIP"}}`)
	p.await(events, "dependent", `"manager":"kubectl-edit"`)
	b.edit(&corev1.Secret{}, "corner-keys", `{"stringData":{"other":"`+shops.Canary+`"},"metadata":{"annotations":{"example.com/key":"`+shops.Canary+`"}}}`)
	if e := p.await(events, "dependent", `corner-keys`); !strings.Contains(e.data, `data.other`) || !strings.Contains(e.data, "***") {
		p.Errorf("the drift of a Secret: %s", e.data)
	}
	b.edit(&appsv1.Deployment{}, "corner-cache", `{"spec":{"template":{"spec":{"containers":[{"name":"cache","image":"registry.example.com/missing:1.0"}]}}}}`)
	p.await(events, "dependent", `"key":"apps/Deployment/market/corner-cache"`)
	check.NoError(b, b.client.Delete(b.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: shops.Namespace, Name: "corner-worker"}}))
	p.await(events, "dependent", `"key":"/Service/market/corner-worker"`) // missing, or already created again
	p.showsObjects(b)
}

// plansAndGoesBack plans an edit, applies it, compares it with what was before, and goes back.
func (p *browser) plansAndGoesBack(b *bed, events <-chan received) {
	p.Helper()
	post := func(path, body string, into any) {
		p.Helper()
		status, text := p.request(http.MethodPost, path+about, body)
		if status != http.StatusOK {
			p.Fatalf("%s %s: %d %s", path, body, status, text)
		}
		check.NoError(b, json.Unmarshal([]byte(text), into))
	}
	var spec map[string]string
	p.get("api/spec"+about, &spec)
	edited := check.Must(json.Marshal(map[string]string{"spec": strings.Replace(spec["yaml"], "discount: 10", "discount: 20", 1)}))(b)
	var plan planAnswer
	if post("api/plan", string(edited), &plan); !strings.Contains(plan.Text, "revision 1 → 2") || !changes(plan.Changes, "corner-keys") || plan.Summary == "" || strings.Contains(plan.Text, "Nothing") {
		p.Errorf("plan: %+v", plan)
	}
	if post("api/plan", `{"delete":true}`, &plan); !strings.Contains(plan.Text, "deletion") || !changes(plan.Changes, "corner-keys") {
		p.Errorf("plan of the deletion: %+v", plan)
	}
	b.edit(shops.New("corner"), "corner", `{"spec":{"discount":20}}`)
	b.untilReady(2)
	p.await(events, "component", `"revision":2`)
	var different difference
	if post("api/diff", `{"revision":1}`, &different); different.From != 2 || different.To != 1 || !changes(different.Changes, "corner-keys") {
		p.Errorf("diff: %+v", different)
	}
	var said map[string]string
	post("api/action", `{"action":"rollback","revision":1,"confirm":"shop/corner"}`, &said)
	b.untilReady(3)
	p.await(events, "component", `"rolledBack":"1"`)
	var known revisionList
	if p.get("api/history"+about, &known); len(known.Items) != 3 || known.Items[2].Note != "rollback to 1" || !known.Items[2].Current {
		p.Errorf("history: %+v", known)
	}
	if post("api/plan", `{"endRollback":true}`, &plan); !changes(plan.Changes, "corner-keys") {
		p.Errorf("plan of the end of the rollback: %+v", plan)
	}
	post("api/action", `{"action":"end-rollback","confirm":"shop/corner"}`, &said)
	b.untilReady(4)
	post("api/action", `{"action":"suspend"}`, &said)
	p.await(events, "component", `"suspended":true`)
	if status, text := p.request(http.MethodPost, "api/action"+about, `{"action":"reconcile"}`); status != http.StatusConflict {
		p.Errorf("a reconcile of a component that is suspended: %d %s", status, text)
	}
	post("api/action", `{"action":"resume"}`, &said)
	p.await(events, "component", `"state":"Ready"`)
	if post("api/action", `{"action":"reconcile"}`, &said); !strings.HasPrefix(said["text"], "shop.shop.example.com/corner annotated") {
		p.Errorf("reconcile: %s", said)
	}
}

func changes(list []report.PlannedChange, name string) bool {
	return slices.ContainsFunc(list, func(c report.PlannedChange) bool { return c.Key.Name == name })
}

// showsObjects opens dependents and pods. No value of a Secret is shown; the test looks for them in all answers.
func (p *browser) showsObjects(b *bed) {
	p.Helper()
	const query = about + "&object="
	var object objectAnswer
	if p.get("api/object"+query+"/Secret/market/corner-keys", &object); len(object.Changes) == 0 || !strings.Contains(object.YAML, "other: '***'") || strings.Contains(object.YAML, "managedFields") {
		p.Errorf("the Secret: %+v", object)
	}
	if p.get("api/object"+query+"apps/Deployment/market/corner-web", &object); len(object.Pods) != 2 || !strings.Contains(object.YAML, "image: registry.example.com/shop:1.0") {
		p.Fatalf("the Deployment: %+v", object)
	}
	pod := "/Pod/market/" + object.Pods[0].Name
	if p.get("api/object"+query+pod, &object); object.State != inspect.StateReady || !slices.Equal(object.Containers, []string{"web"}) {
		p.Errorf("the pod: %+v", object)
	}
	var happened eventList
	if p.get("api/events"+query+pod, &happened); len(happened.Items) == 0 || happened.Items[0].Object != "Pod market/"+object.Name {
		p.Errorf("its events: %+v", happened)
	}
	b.edit(&corev1.Pod{}, object.Name, `{"metadata":{"annotations":{"podsim.corbel.run/log":"one line\nAuthorization: Bearer `+shops.Canary[7:13]+`"}}}`)
	var log struct{ Text string }
	if p.get("api/log"+query+pod+"&container=web", &log); log.Text != "one line\nAuthorization: Bearer ***\n" {
		p.Errorf("its log: %+v", log)
	}
	if status, text := p.request(http.MethodGet, "api/log"+query+pod+"&container=none", ""); status != http.StatusBadRequest || !strings.Contains(text, "container none") {
		p.Errorf("the log of a container that is not there: %d %s", status, text)
	}
	for key, want := range map[string]string{"/Secret/market/corner-keys": "key: '***'", "apps/Deployment/market/corner-web": "image: registry.example.com/shop:1.0"} {
		status, text := p.request(http.MethodPost, "api/manifest"+query+key, "{}")
		var shown manifest
		if err := json.Unmarshal([]byte(text), &shown); status != http.StatusOK || err != nil || !strings.Contains(shown.YAML, want) {
			p.Errorf("the manifest of %s: %d %s", key, status, text)
		}
	}
}

// leavesNothing opens and closes streams.
func (p *browser) leavesNothing(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Run("streams", func(t *testing.T) {
		short := &browser{TB: t, url: p.url, client: p.client}
		for range 20 {
			short.await(short.listen(about), "tree", "corner-web")
		}
	})
	awaitGoroutines(t, before+10)
}

// awaitGoroutines waits until there are so few goroutines.
func awaitGoroutines(t *testing.T, most int) {
	t.Helper()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > most; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			text := make([]byte, 1<<20)
			t.Fatalf("more than %d goroutines: %s", most, text[:runtime.Stack(text, true)])
		}
	}
}

// losesTheServer kills the API server under the streams, and changes a dependent when it is back.
func (p *browser) losesTheServer(b *bed, events <-chan received) {
	p.Helper()
	check.NoError(b, b.env.KillAPIServer())
	p.await(events, "fleet", `"isDown":true`)
	if status, text := p.request(http.MethodGet, "api/why"+about, ""); status != http.StatusBadGateway {
		p.Errorf("a cause without the API server: %d %s", status, text)
	}
	check.NoError(b, b.env.RestartAPIServer(b.Context()))
	p.await(events, "fleet", `"isDown":false`)
	env.Until(b, "an object is changed", func() error {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: shops.Namespace, Name: "corner-web"}}
		return b.client.Patch(b.Context(), s, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sessionAffinity":"ClientIP"}}`)), client.FieldOwner("after-the-outage"))
	})
	p.await(events, "", "after-the-outage") // a dependent, or the tree that is read again
}
