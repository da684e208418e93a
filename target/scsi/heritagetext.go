package scsi

import (
	"encoding/json"
	"fmt"

	"lunar/internal/durable"
	"lunar/target/scsi/mode"
	"lunar/target/scsi/reservation"
)

// heritageText is a Heritage as it is stored.
type heritageText struct {
	Version      int                `json:"version"`
	Reservations json.RawMessage    `json:"reservations"`
	Latest       *Latest            `json:"latest,omitempty"`
	Reserved     *reservation.Nexus `json:"reserved,omitempty"`
	Owed         []Owed             `json:"owed,omitempty"`
	Identifying  Identifying        `json:"identifying"`
	Modes        *modesText         `json:"modes,omitempty"`
	Sanitizing   *SanitizeNote      `json:"sanitizing,omitempty"`
}

type modesText struct {
	WriteCache      bool `json:"write-cache"`
	SoftProtect     bool `json:"soft-protect"`
	DescriptorSense bool `json:"descriptor-sense"`
	OwnTags         bool `json:"own-tags"`
}

const heritageVersion = 1

// Encode returns the heritage as JSON.
func (h *Heritage) Encode() ([]byte, error) {
	text := heritageText{Version: heritageVersion, Owed: h.Owed, Identifying: h.Identifying, Sanitizing: h.Sanitizing}
	var err error
	if text.Reservations, err = h.Reservations.MarshalWhole(); err != nil {
		return nil, err
	}
	if h.Latest != (Latest{}) {
		text.Latest = &h.Latest
	}
	if h.Reserved != (reservation.Nexus{}) {
		text.Reserved = &h.Reserved
	}
	if m := h.Modes; m != nil {
		text.Modes = &modesText{m.WriteCache, m.SoftProtect, m.DescriptorSense, m.OwnTags}
	}
	return json.Marshal(text)
}

// ParseHeritage reads what Encode writes. What a later version has that this one does not
// know is an error: it would be lost with the next change.
func ParseHeritage(data []byte) (*Heritage, error) {
	var in heritageText
	if err := durable.Strict(data, &in); err != nil {
		return nil, err
	}
	if in.Version != heritageVersion {
		return nil, fmt.Errorf("version: found %d, expected %d", in.Version, heritageVersion)
	}
	h := &Heritage{Owed: in.Owed, Identifying: in.Identifying, Sanitizing: in.Sanitizing}
	var err error
	if h.Reservations, err = reservation.UnmarshalWhole(in.Reservations); err != nil {
		return nil, fmt.Errorf("reservations: %w", err)
	}
	if in.Latest != nil {
		h.Latest = *in.Latest
	}
	if in.Reserved != nil {
		h.Reserved = *in.Reserved
	}
	if m := in.Modes; m != nil {
		h.Modes = &mode.Values{WriteCache: m.WriteCache, SoftProtect: m.SoftProtect, DescriptorSense: m.DescriptorSense, OwnTags: m.OwnTags}
	}
	if len(h.Owed) > maxOwed || len(h.Identifying.Device) > maxIdentifyingDevice || len(h.Identifying.Text) > maxIdentifyingText {
		return nil, fmt.Errorf("found %d unit attentions and %d and %d bytes of identifying information, expected at most %d, %d and %d",
			len(h.Owed), len(h.Identifying.Device), len(h.Identifying.Text), maxOwed, maxIdentifyingDevice, maxIdentifyingText)
	}
	return h, nil
}
