package screen

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// capture is a recorded screen of a real client, and the truth about it.
type capture struct {
	path, agent, text, title, truth, note string
	picker                                bool // one that the person opened: it may as well be taken for a dialog
	half                                  int  // states by the hash of their names: one half was tuned on, the other measured
}

// corpus reads the captures of testdata/screens, or those of SCREENS, a directory of the same form.
func corpus(t *testing.T) []capture {
	t.Helper()
	dir := os.Getenv("SCREENS")
	if dir == "" {
		dir = filepath.Join("..", "..", "testdata", "screens")
	}
	table, err := os.ReadFile(filepath.Join(dir, "LABELS.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var all []capture
	for i, row := range strings.Split(strings.TrimSpace(string(table)), "\n") {
		field := strings.Split(row, "\t")
		if i == 0 {
			continue
		}
		if len(field) != 5 {
			t.Fatalf("LABELS.tsv:%d: %d fields, want 5", i+1, len(field))
		}
		text, err := os.ReadFile(filepath.Join(dir, field[0]))
		if err != nil {
			t.Fatal(err)
		}
		agent, _, _ := strings.Cut(field[0], "-")
		state := regexp.MustCompile(`-\d+\.txt$`).ReplaceAllString(filepath.Base(field[0]), "")
		title := field[2]
		if strings.HasPrefix(title, "(none") {
			title = ""
		}
		all = append(all, capture{
			path: field[0], agent: agent, text: string(text), title: title, truth: field[1], note: field[4],
			picker: strings.Contains(state, "picker"),
			half:   int(sha256.Sum256([]byte(state))[0] & 1),
		})
	}
	return all
}

var states = []State{Idle, Working, Background, Blocked, Unknown}

// confusion counts what the screens of each truth were taken for.
type confusion map[string]map[State]int

func (c confusion) add(truth string, s State) {
	if c[truth] == nil {
		c[truth] = map[State]int{}
	}
	c[truth][s]++
}

func (c confusion) print(w io.Writer, name string) {
	fmt.Fprintf(w, "\n%-28s", name)
	for _, s := range states {
		fmt.Fprintf(w, " %10s", s)
	}
	fmt.Fprintln(w)
	for _, truth := range []string{"idle", "working", "background", "blocked", "exited"} {
		if c[truth] == nil {
			continue
		}
		fmt.Fprintf(w, "%28s", truth)
		for _, s := range states {
			fmt.Fprintf(w, " %10d", c[truth][s])
		}
		fmt.Fprintln(w)
	}
}

// found is the share of the idle screens that were found, in percent.
func (c confusion) found() float64 {
	n := 0
	for _, k := range c["idle"] {
		n += k
	}
	if n == 0 {
		return 100
	}
	return 100 * float64(c["idle"][Idle]) / float64(n)
}

// TestNoScreenThatIsNotIdleIsCalledIdle runs every capture, with its title and without, prints what it was taken for,
// and fails where one that works, waits or goes on in the background is called idle, or too few idle ones are found, of
// a client's or of all. Codex has a title for the end of a turn and nothing else that could not be a copy, see
// TestASummaryOfCodexAndItsCopyAreToldByTheTitleAlone: without titles it only counts among all.
func TestNoScreenThatIsNotIdleIsCalledIdle(t *testing.T) {
	all := corpus(t)
	for _, mode := range []struct {
		name   string
		titled bool
		must   float64
	}{{"with titles", true, 95}, {"without titles", false, 80}} {
		tables, order := map[string]confusion{}, []string{}
		halves, whole := [2]confusion{{}, {}}, confusion{}
		for _, c := range all {
			title := c.title
			if !mode.titled {
				title = ""
			}
			r := Read(c.agent, c.text, title)
			client, _, _ := strings.Cut(c.path, "/")
			if tables[client] == nil {
				tables[client] = confusion{}
				order = append(order, client)
			}
			truth, got := c.truth, r.State
			if c.picker && got == Blocked {
				truth = "blocked"
			}
			tables[client].add(truth, got)
			halves[c.half].add(truth, got)
			whole.add(truth, got)
			if got == Idle && truth != "idle" && truth != "exited" {
				t.Errorf("%s, %s: %s is called idle by %s %q", c.path, mode.name, truth, r.By, r.Evidence)
			}
			if testing.Verbose() && string(got) != truth {
				fmt.Fprintf(t.Output(), "%s: %s, taken for %s %s %q\n", c.path, truth, got, r.By, r.Evidence)
			}
		}
		for _, client := range order {
			tables[client].print(t.Output(), client+" "+mode.name)
			if share := tables[client].found(); share < mode.must && (mode.titled || !strings.HasPrefix(client, "codex-")) {
				t.Errorf("%s, %s: %.1f %% of the idle screens are found, want %.0f", client, mode.name, share, mode.must)
			}
		}
		fmt.Fprintf(t.Output(), "\n%s: idle found %.1f %%; %.1f %% in one half of the states, %.1f %% in the other\n", mode.name, whole.found(), halves[0].found(), halves[1].found())
		if share := whole.found(); share < mode.must {
			t.Errorf("%s: %.1f %% of the idle screens are found, want %.0f", mode.name, share, mode.must)
		}
	}
}
