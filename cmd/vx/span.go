//go:build !windows

package main

import (
	"errors"
	"regexp"
	"strconv"
	"time"
)

// span is a duration that may be written in days: 30d, 1d12h, 90m.
type span time.Duration

var days = regexp.MustCompile(`^(\d{1,5})d`)

// UnmarshalText is called by kong.
func (s *span) UnmarshalText(text []byte) error {
	rest, total := string(text), time.Duration(0)
	if m := days.FindStringSubmatch(rest); m != nil {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return err
		}
		total, rest = time.Duration(n)*24*time.Hour, rest[len(m[0]):]
	}
	if rest != "" || total == 0 {
		d, err := time.ParseDuration(rest)
		if err != nil && string(text) != "0d" {
			return errors.New("want a duration such as 30m, 8h or 2d")
		}
		total += d
	}
	*s = span(total)
	return nil
}
