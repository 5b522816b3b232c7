// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Client is a client of the service.
type Client struct {
	// URL is where the service is.
	URL string
	// HTTP sends the requests; give it a timeout.
	HTTP *http.Client
}

// Error is an answer that is no success.
type Error struct {
	Status  int
	Message string
}

// Error returns the answer.
func (e *Error) Error() string {
	return fmt.Sprintf("the bucket service answers %d: %s", e.Status, e.Message)
}

// IsInvalid reports whether the service has found the request invalid, and done nothing.
func IsInvalid(err error) bool {
	answer, ok := errors.AsType[*Error](err)
	return ok && (answer.Status == http.StatusBadRequest || answer.Status == http.StatusUnprocessableEntity)
}

// Create creates a bucket. The same key makes one bucket only.
func (c *Client) Create(ctx context.Context, key string, quota int64) (*Bucket, error) {
	b := &Bucket{}
	return b, c.send(ctx, http.MethodPost, "/buckets", Bucket{Key: key, Quota: quota}, b)
}

// Get returns the bucket with the id, or nil if there is none.
func (c *Client) Get(ctx context.Context, id string) (*Bucket, error) {
	b := &Bucket{}
	err := c.send(ctx, http.MethodGet, "/buckets/"+id, nil, b)
	if answer, ok := errors.AsType[*Error](err); ok && answer.Status == http.StatusNotFound {
		return nil, nil
	}
	return b, err
}

// Find returns the bucket that was created with the key, or nil if there is none.
func (c *Client) Find(ctx context.Context, key string) (*Bucket, error) {
	var found []*Bucket
	if err := c.send(ctx, http.MethodGet, "/buckets?key="+url.QueryEscape(key), nil, &found); err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// SetQuota changes the quota of a bucket.
func (c *Client) SetQuota(ctx context.Context, id string, quota int64) error {
	return c.send(ctx, http.MethodPut, "/buckets/"+id+"/quota", Bucket{Quota: quota}, nil)
}

// Put puts an object into a bucket. The same key puts it once only.
func (c *Client) Put(ctx context.Context, id, key, name string) error {
	return c.send(ctx, http.MethodPost, "/buckets/"+id+"/objects", map[string]string{"key": key, "name": name}, nil)
}

// Delete deletes a bucket, if there is one with the id.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.send(ctx, http.MethodDelete, "/buckets/"+id, nil, nil)
}

func (c *Client) send(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, content)
	if err != nil {
		return err
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return &Error{Status: response.StatusCode, Message: strings.TrimSpace(string(text))}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
