// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestThePageShowsACluster(t *testing.T) {
	b := openBed(t)
	b.createShop("corner")
	p := serve(t, b.env.Config(), Options{Write: true})
	var list componentList
	p.get("api/components", &list)
	if len(list.Items) != 1 || len(list.Problems) > 0 || !list.Items[0].Ready || list.Items[0].Progress != "14/14" {
		t.Fatalf("%+v", list)
	}
	_, text := p.request(http.MethodGet, "api/tree"+aboutCorner, "")
	t.Log(text)
	_, text = p.request(http.MethodGet, "api/why"+aboutCorner, "")
	t.Log(text)
	_, text = p.request(http.MethodGet, "api/history"+aboutCorner, "")
	t.Log(text)
	_, text = p.request(http.MethodGet, "api/events"+aboutCorner, "")
	t.Log(text[:1000])
	_, text = p.request(http.MethodPost, "api/plan"+aboutCorner, `{"delete":true}`)
	t.Log(text)
	_, text = p.request(http.MethodGet, "api/spec"+aboutCorner, "")
	t.Log(text)
	events := p.listen(aboutCorner)
	p.await(events, "reset", "")
	p.await(events, "tree", "corner-web")
	started := time.Now()
	settings := &corev1.Service{}
	settings.Namespace, settings.Name = market, "corner-api"
	b.check(b.client.Patch(b.ctx, settings, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sessionAffinity":"ClientIP"}}`)), client.FieldOwner("kubectl-edit")))
	e := p.await(events, "dependent", "ClientIP")
	t.Log(time.Since(started), e.data)
	_ = json.Valid
	_ = fmt.Sprint
	_ = strings.Contains
}
