package green

import (
	"fmt"
	"strings"
	"testing"

	"vx/internal/wake"
)

func TestTheVerdictIsTheFirstLineThatIsNotBlank(t *testing.T) {
	for said, want := range map[string]bool{
		"PASS":                         true,
		"PASS: ok":                     true,
		"\n \n\t PASS\nFAIL":           true,
		"PASS.":                        true,
		"\x1b[1;32mPASS\x1b[0m - fine": true,
		"\x1b]0;title\aPASS":           true,
		"PASS\r\nwell":                 true,
		"PASSES only":                  false,
		"PASS_1":                       false,
		"PASS2":                        false,
		"pass":                         false,
		"FAIL\nPasses only because…":   false,
		"FAIL\nPASS":                   false,
		"**PASS**":                     false,
		"I say PASS":                   false,
		"Error: Reached max turns (1)": false,
		"":                             false,
		"\n\n":                         false,
		"P\x1b[0mASS is how the client paints it": true,
	} {
		if got := verdict(wake.Clean(said)); got != want {
			t.Errorf("%q: %v", said, got)
		}
	}
}

func TestTheExcerptHasTheTellingLines(t *testing.T) {
	long := strings.Repeat("fine\n", 1000)
	for _, telling := range []string{
		"error[E0308]: x", "error: x", "no field `a`", "unknown b", "cannot find c", "FAILED", "1 failed", "panicked at", "TypeError", "✗ x", "not ok 1", "AssertionError",
	} {
		got, err := excerpt(strings.NewReader(long + "  " + telling + "\n" + long))
		if err != nil || got != "  "+telling+"\n" {
			t.Errorf("%s: %q, %v", telling, got, err)
		}
	}
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "error: %d\nnoise\n", i)
	}
	got, err := excerpt(strings.NewReader(many.String()))
	if err != nil || strings.Count(got, "\n") != 20 || !strings.HasPrefix(got, "error: 0\nerror: 1\n") || strings.Contains(got, "noise") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := excerpt(strings.NewReader("\x1b[31merror: red\x1b[0m")); got != "error: red\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTheExcerptIsElseTheEnd(t *testing.T) {
	for _, size := range []int{0, 10, 1500, 1501, 100_000, 1 << 20} {
		text := strings.Repeat("0123456789", size/10+1)[:size]
		got, err := excerpt(strings.NewReader(text))
		if want := text[max(0, size-1500):]; got != want || err != nil {
			t.Errorf("%d: %d bytes, %v", size, len(got), err)
		}
	}
	if got, _ := excerpt(strings.NewReader("x" + strings.Repeat("ä", 5000))); len(got) > 1500 || strings.Trim(got, "ä") != "" {
		t.Errorf("%q", got)
	}
}

func TestAFenceIsNotClosedFromWithin(t *testing.T) {
	if got := fence("a\n````\nb"); got != "`````\na\n````\nb\n`````\n" {
		t.Errorf("%q", got)
	}
}

func TestTheClientsReportIsFound(t *testing.T) {
	const one = `{"type":"result","subtype":"success","is_error":false,"result":"PASS","total_cost_usd":0.25}`
	for out, want := range map[string]string{
		one:                                     "0.25 PASS",
		"a warning\n" + one + "\n":              "0.25 PASS",
		`{"type":"system"}` + "\n" + one:        "0.25 PASS",
		`[{"type":"system"},` + one + `]`:       "0.25 PASS",
		`{"total_cost_usd":1}`:                  "1 ",
		`{"type":"result","total_cost_usd":-1}`: "none ",
		`{"type":"result","subtype":"error_max_turns","total_cost_usd":2}`: "2 Error: error_max_turns",
		`{"cost":1}`:  "",
		"PASS":        "",
		"":            "",
		`{"type":"re`: "",
	} {
		got := ""
		if r := reported([]byte(out)); r != nil {
			got = "none "
			if r.Cost != nil {
				got = fmt.Sprint(*r.Cost, " ")
			}
			got += r.words()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", out, got, want)
		}
	}
}
