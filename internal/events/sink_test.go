// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/internal/events"
)

// TestASinkThatFailsBlocksNothingAndIsNotCalledAgain sends events to servers that do not
// take them.
func TestASinkThatFailsBlocksNothingAndIsNotCalledAgain(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":%d}`, code)
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"it forbids them": status(http.StatusForbidden),
		"it fails":        status(http.StatusInternalServerError),
		"it answers with ten megabytes": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write(bytes.Repeat([]byte("x"), 10<<20))
		},
		"it never answers": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int64
			asked, end := make(chan struct{}, 100), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if strings.Contains(request.URL.Path, "events") {
					requests.Add(1)
					asked <- struct{}{}
				}
				if answer != nil {
					answer(w, request)
					return
				}
				<-end
			}))
			defer server.Close()
			defer close(end)
			mgr, err := ctrl.NewManager(&rest.Config{Host: server.URL}, ctrl.Options{
				Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
			})
			if err != nil {
				t.Fatal(err)
			}
			recorder := events.NewRecorder(mgr, "test.corbel.run")
			obj := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "1"}}
			const sent = 5
			finished := make(chan struct{})
			go func() {
				defer close(finished)
				for i := range sent {
					events.Send(recorder, obj, 1, events.Event{Reason: fmt.Sprintf("Reason%d", i), Note: strings.Repeat("x", 10<<20)})
				}
			}()
			select {
			case <-finished:
			case <-time.After(2 * time.Minute):
				t.Fatal("the sender is held up")
			}
			select {
			case <-asked:
			case <-time.After(2 * time.Minute):
				t.Fatal("no event was sent")
			}
			untilQuiet(asked)
			if n := requests.Load(); n > sent {
				t.Errorf("%d requests for %d events", n, sent)
			}
		})
	}
}

// untilQuiet waits until no more requests come. More than one request for an event
// would come at once, if at all.
func untilQuiet(asked <-chan struct{}) {
	quiet := time.NewTimer(500 * time.Millisecond)
	for {
		select {
		case <-asked:
			quiet.Reset(500 * time.Millisecond)
		case <-quiet.C:
			return
		}
	}
}
