// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill returns the bill of materials of a binary, in the format CycloneDX. It has no serial number, and its date is that of the commit.
func bill(built *binary, r release) ([]byte, error) {
	program := built.modules[0].component(cdx.ComponentTypeApplication)
	program.Name = built.name
	program.PackageURL += "?goarch=" + built.arch + "&goos=" + built.os
	program.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: checksum(built.content)}}
	program.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS, URL: sourceURL, Comment: r.revision}}
	var components []cdx.Component
	var linked []string
	for _, m := range built.modules[1:] {
		c := m.component(cdx.ComponentTypeLibrary)
		components, linked = append(components, c), append(linked, c.BOMRef)
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.date.Format(time.RFC3339), Component: &program,
		Lifecycles: &[]cdx.Lifecycle{{Phase: cdx.LifecyclePhaseBuild}},
	}
	bom.Components = &components
	// The binary says what is linked, not which module requires which.
	bom.Dependencies = &[]cdx.Dependency{{Ref: program.BOMRef, Dependencies: &linked}}
	var out bytes.Buffer
	// Version 1.6 is the newest one that most scanners read.
	err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
	return out.Bytes(), err
}

// component returns a module as a component.
func (m module) component(kind cdx.ComponentType) cdx.Component {
	url := "pkg:golang/" + m.path + "@" + strings.ReplaceAll(m.version, "+", "%2B")
	var licences cdx.Licenses
	for _, id := range m.ids {
		licences = append(licences, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return cdx.Component{BOMRef: url, Type: kind, Name: m.path, Version: m.version, PackageURL: url, Licenses: &licences}
}
