//go:build !windows

package main

import (
	"testing"
	"time"
)

func TestARowSaysWhetherItsMustAndItsShouldAreMet(t *testing.T) {
	for _, tt := range []struct {
		ratio float64
		kept  bool
		want  string
	}{
		{1.2, true, "ok"},
		{1.5, true, "ok"},
		{1.8, true, "ok, but not what it should be"},
		{2, true, "ok, but not what it should be"},
		{2.01, false, "MISSED"},
	} {
		r := atMost("exit", "", "", tt.ratio, 2, 1.5)
		if r.kept() != tt.kept || r.verdict() != tt.want {
			t.Errorf("%v: kept %v, %q; want %q", tt.ratio, r.kept(), r.verdict(), tt.want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var all []time.Duration
	for i := range 100 {
		all = append(all, time.Duration((i*37)%100))
	}
	if m, p99 := median(all), quantile(all, 0.99); m != 50 || p99 != 99 {
		t.Errorf("median %d, p99 %d", m, p99)
	}
	if one := quantile(all[:1], 0.99); one != 0 {
		t.Errorf("of one: %d", one)
	}
}

func TestNumbersAreShownAsPeopleReadThem(t *testing.T) {
	for got, want := range map[string]string{
		times(1.25): "1.25×", times(0.9): "0.9×", times(1. / 8): "1/8", times(1. / 5000): "1/5000",
		show(1500 * time.Nanosecond): "1.5 µs", show(4200 * time.Microsecond): "4.2 ms", show(5 * time.Second): "5 s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
