// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/cmd/corbel/ui"
)

// A page on the loopback interface is opened by a token.
func Example() {
	page, err := ui.New(&rest.Config{Host: "https://cluster.example.com"}, ui.Options{Address: "127.0.0.1:8080", Token: "a token that is hard to guess"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer page.Close()
	request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/api/info", nil)
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, request)
	fmt.Println(answer.Code, answer.Body)
	// Output: 401 {"error":"open the address that corbel ui printed"}
}
