// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/test/wire"
)

// bank is an API in memory. It counts what it creates.
type bank struct {
	// forgetful makes another room for the same token.
	forgetful bool

	mu      sync.Mutex
	rooms   map[string]*room
	created int
	// most is how many rooms there were at the same time.
	most int
}

type room struct {
	token string
	size  int64
}

func newBank(forgetful bool) *bank { return &bank{forgetful: forgetful, rooms: map[string]*room{}} }

// count returns how many rooms were created, are there, and were there at a time.
func (b *bank) count() (created, there, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.created, len(b.rooms), b.most
}

func (b *bank) sizes() (sizes []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.rooms {
		sizes = append(sizes, r.size)
	}
	return sizes
}

// find looks by name, or else by token.
func (b *bank) find(record external.Record) (name string, found room, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, r := range b.rooms {
		if record.Name == name || record.Name == "" && r.token == record.Token {
			return name, *r, true
		}
	}
	return "", room{}, false
}

func (b *bank) build(token string, size int64) (name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, r := range b.rooms {
		if r.token == token && !b.forgetful {
			return name
		}
	}
	b.created++
	name = fmt.Sprintf("room-%d", b.created)
	b.rooms[name] = &room{token: token, size: size}
	b.most = max(b.most, len(b.rooms))
	return name
}

func (b *bank) resize(name string, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.rooms[name]; ok {
		r.size = size
	}
}

func (b *bank) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rooms, name)
}

// teller is a Client of the bank. Each request may be stopped on its way by the gate, if there is one.
type teller struct {
	*bank
	gate *wire.Gate
}

// send serves a request, unless its context is over.
func (t *teller) send(ctx context.Context, request string, serve func()) error {
	return t.gate.Do(request, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		serve()
		return nil
	})
}

func (t *teller) Observe(ctx context.Context, v *vault) (seen external.Observation, err error) {
	err = t.send(ctx, "observe", func() {
		name, found, ok := t.find(v.Status.External)
		if ok {
			v.Status.Size = found.size
			seen = external.Observation{Exists: true, UpToDate: found.size == v.Spec.Size, Name: name}
		}
	})
	return seen, err
}

func (t *teller) Create(ctx context.Context, v *vault) (done external.Operation, err error) {
	if v.Spec.Size < 0 {
		return done, external.Refused(errors.New("a room cannot be smaller than nothing"))
	}
	err = t.send(ctx, "create", func() { done.Name = t.build(v.Status.External.Token, v.Spec.Size) })
	return done, err
}

func (t *teller) Update(ctx context.Context, v *vault) (done external.Operation, err error) {
	return done, t.send(ctx, "update", func() {
		if name, _, ok := t.find(v.Status.External); ok {
			t.resize(name, v.Spec.Size)
		}
	})
}

func (t *teller) Delete(ctx context.Context, v *vault) (done external.Operation, err error) {
	return done, t.send(ctx, "delete", func() {
		if name, _, ok := t.find(v.Status.External); ok {
			t.remove(name)
		}
	})
}
