//go:build !windows

package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// span is a duration that may be written in days: 30d, 1d12h, 90m.
type span time.Duration

var errSpan = errors.New("want a duration such as 30m, 8h or 2d")

// UnmarshalText is called by kong.
func (s *span) UnmarshalText(text []byte) error {
	rest, total := string(text), time.Duration(0)
	if days, behind, ok := strings.Cut(rest, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return errSpan
		}
		total, rest = time.Duration(n)*24*time.Hour, behind
	}
	if rest != "" || total == 0 {
		d, err := time.ParseDuration(rest)
		if err != nil && string(text) != "0d" {
			return errSpan
		}
		total += d
	}
	*s = span(total)
	return nil
}
