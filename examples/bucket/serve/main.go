// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Serve runs the bucket service of the example on this machine, to try the operator with.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/corbel-run/corbel/examples/bucket/service"
)

func main() {
	port := flag.Int("port", 8095, "the port on the loopback interface")
	refuse := flag.Int("refuse", 0, "how many requests are refused at first")
	flag.Parse()
	buckets := service.New()
	for range *refuse {
		buckets.Fail(service.FaultRefuse)
	}
	if err := http.ListenAndServe(fmt.Sprintf("127.0.0.1:%d", *port), buckets); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
