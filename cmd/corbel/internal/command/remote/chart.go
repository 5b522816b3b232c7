// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"
)

// Chart is a packed chart.
type Chart struct {
	// Origin is where it was fetched from, with its version, but without what is secret.
	Origin string
	// Digest is that of its manifest in a registry, or of the file of a web server.
	Digest string
	// Data is the packed chart.
	Data []byte
}

// Client fetches charts. The zero value uses the credentials and the proxy of the user.
type Client struct {
	// PlainHTTP allows servers without TLS.
	PlainHTTP bool
	// Transport sends the requests; nil is that of net/http.
	Transport http.RoundTripper
}

// maxChart limits the size of a packed chart, in bytes.
const maxChart = 100 << 20

// maxTime limits how long a chart, or the index of a repository, takes with all its requests.
const maxTime = 5 * time.Minute

// maxRedirects limits the redirects of a request.
const maxRedirects = 10

// schemes are the beginnings of what is fetched.
var schemes = []string{"oci://", "https://", "http://"}

// IsRemote reports whether a source is not on this machine.
func IsRemote(source string) bool {
	return slices.ContainsFunc(schemes, func(scheme string) bool { return strings.HasPrefix(source, scheme) })
}

// Fetch fetches the chart with the address oci://REGISTRY/PATH[:VERSION][@DIGEST] or https://HOST/PATH.tgz.
// An error names the address and says what to do.
func (c Client) Fetch(ctx context.Context, source string) (Chart, error) {
	return c.fetch(ctx, source, anyRelease)
}

// fetch fetches a chart. An address of a registry without a version is that of the newest one that fits the range.
func (c Client) fetch(ctx context.Context, source, versions string) (Chart, error) {
	address, err := url.Parse(source)
	if err != nil { // without the address, which may hold a password
		return Chart{}, errors.New("the address of the chart cannot be read: use oci://REGISTRY/PATH[:VERSION][@DIGEST] or https://HOST/PATH.tgz")
	}
	if address.User != nil {
		return Chart{}, errors.New("the address of a chart must not hold a user or a password: use helm registry login or docker login")
	}
	ctx, cancel := withLimit(ctx)
	defer cancel()
	var chart Chart
	switch {
	case strings.HasPrefix(source, "oci://"):
		chart, err = c.fromRegistry(ctx, strings.TrimPrefix(source, "oci://"), versions, false)
		if c.PlainHTTP && hasNoTLS(err) { // credentials go to a registry with TLS by TLS
			chart, err = c.fromRegistry(ctx, strings.TrimPrefix(source, "oci://"), versions, true)
		}
	case address.Scheme == "https" || c.PlainHTTP:
		chart, err = c.fromServer(ctx, address)
	default:
		err = errors.New("use https, or --plain-http if the server has no TLS")
	}
	if err != nil {
		return Chart{}, fmt.Errorf("the chart %s cannot be fetched: %w", public(source), explained(ctx, address, err))
	}
	return chart, nil
}

// withLimit returns a context that ends after maxTime: a server may accept a request and not answer it, or have pages of tags
// without end.
func withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("it takes longer than %s: check the address and the network, or repeat the command", maxTime))
}

// fromServer fetches a chart of a web server.
func (c Client) fromServer(ctx context.Context, address *url.URL) (Chart, error) {
	data, err := c.download(ctx, address, maxChart)
	if err != nil {
		return Chart{}, err
	}
	if !isPacked(data) {
		return Chart{}, errNoChart
	}
	return Chart{Origin: public(address.String()), Digest: digestOf(data), Data: data}, nil
}

// download fetches a file of a web server.
func (c Client) download(ctx context.Context, address *url.URL, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity") // a server may say that a packed chart is a compressed answer
	response, err := c.http().Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("the server refuses access (%s), and corbel has no credentials for web servers: download the chart by other means; a packed sub-chart belongs into the folder charts", response.Status)
	default:
		return nil, fmt.Errorf("the server answers %s: check the address, or repeat the command", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d MiB", limit>>20)
	}
	return data, err
}

func digestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// http returns a client that tries again what may pass, as Helm does.
func (c Client) http() *http.Client {
	return &http.Client{Transport: retry.NewTransport(c.Transport), CheckRedirect: checkRedirect}
}

// checkRedirect refuses to leave TLS, and hands on no token of the address in the Referer. The client of registries keeps
// the credentials from other servers itself.
func checkRedirect(next *http.Request, before []*http.Request) error {
	from := before[len(before)-1].URL
	switch {
	case len(before) >= maxRedirects:
		return fmt.Errorf("the server redirects more than %d times", maxRedirects)
	case from.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("%s redirects to %s, which has no TLS", from.Host, next.URL.Host)
	}
	next.Header.Del("Referer")
	return nil
}

var (
	errTooLarge = fmt.Errorf("it is larger than %d MiB", maxChart>>20)
	errNoChart  = errors.New("it is not a packed Helm chart")
)

// isPacked reports whether data may be a packed chart: it has the signature of gzip.
func isPacked(data []byte) bool { return len(data) > 2 && data[0] == 0x1f && data[1] == 0x8b }

// public returns an address without its query, which may hold a token.
func public(address string) string {
	if strings.HasPrefix(address, "oci://") {
		return address
	}
	address, _, _ = strings.Cut(address, "?")
	return address
}

// explained returns an error of a transfer as a sentence that says what to do. It does not wrap errors of the network, which
// the command takes for errors of the API server.
func explained(ctx context.Context, address *url.URL, err error) error {
	var (
		answer  *errcode.ErrorResponse
		request *url.Error
		network net.Error
	)
	if errors.As(err, &request) {
		err = request.Err // the address is named already, and may hold a token
	}
	if errors.As(err, &answer) {
		answer.URL = &url.URL{Scheme: answer.URL.Scheme, Host: answer.URL.Host, Path: answer.URL.Path} // the address of a blob may hold a token
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, auth.ErrBasicCredentialNotFound),
		answer != nil && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden):
		return fmt.Errorf("the registry refuses access: log in by helm registry login %[1]s, or docker login %[1]s: %[2]w", address.Host, err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("the server has broken off: repeat the command: %v", err)
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData):
		return fmt.Errorf("the registry has sent something else than its manifest says: %w", err)
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return errTooLarge
	case errors.As(err, &network):
		return fmt.Errorf("the server cannot be reached: check the address and the network: %v", err)
	case hasNoTLS(err):
		return fmt.Errorf("the server has no TLS: add --plain-http if this is right: %w", err)
	}
	return err
}

// hasNoTLS reports whether a server does not speak TLS.
func hasNoTLS(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}
