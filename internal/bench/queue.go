//go:build !windows

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vx/internal/state"
	"vx/internal/wake"
)

// fill drops so many wakes into a project's queue, without syncing each.
func fill(p *state.Project, n int) error {
	q := wake.Open(p)
	if err := q.Ensure(); err != nil {
		return err
	}
	for i := range n {
		name := filepath.Join(q.Dir(), fmt.Sprintf("wake-%06d.json", i))
		data := fmt.Appendf(nil, `{"title":"number %d","key":"wake-%06d","kind":"message"}`, i, i)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// claimMain claims twice, and puts everything back: it prints how long the first claim of a process takes, and the next.
func claimMain(args []string) int {
	took, err := claims(args[0])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(took)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func claims(root string) (took [2]time.Duration, err error) {
	dir, err := state.Open()
	if err != nil {
		return took, err
	}
	q := wake.Open(dir.Project(root))
	for i := range took {
		began := time.Now()
		d, err := q.Claim(context.Background())
		took[i] = time.Since(began)
		if err != nil {
			return took, err
		}
		if d == nil {
			return took, errors.New("nothing was claimed")
		}
		if err := d.Release(context.Background(), "bench"); err != nil {
			return took, err
		}
	}
	return took, nil
}

// backlog measures a claim and a put in a queue where much waits, against one where little does.
func (b *bench) backlog() error {
	much := b.pick(100_000, 10_000)
	const little = 60
	var projects [2]*state.Project
	for i, n := range []int{little, much} {
		p, err := b.project(fmt.Sprintf("backlog-%d", n), "")
		if err != nil {
			return err
		}
		if err := fill(p, n); err != nil {
			return err
		}
		projects[i] = p
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var cold, warm, fold [2][]time.Duration
	for n := range b.pick(41, 15) {
		for i, p := range projects {
			out, err := exec.Command(self, childArg, "claim", p.Root).Output()
			if err != nil {
				return fmt.Errorf("claim: %w", err)
			}
			var took [2]time.Duration
			if err := json.Unmarshal(out, &took); err != nil {
				return err
			}
			cold[i], warm[i] = append(cold[i], took[0]), append(warm[i], took[1])
			began := time.Now()
			w := wake.Wake{Key: fmt.Sprintf("wake-%06d", n), Title: "again"}
			if _, err := wake.Open(p).Put(context.Background(), w); err != nil {
				return err
			}
			fold[i] = append(fold[i], time.Since(began))
		}
	}
	for _, m := range []struct {
		what string
		took [2][]time.Duration
	}{
		{"a claim, the first of its process", cold},
		{"a claim, the second of its process", warm},
		{"a put that folds", fold},
	} {
		few, many := median(m.took[0]), median(m.took[1])
		b.add(row{"backlog", fmt.Sprintf("%s, with %d wakes waiting: %s", m.what, much, show(many)),
			fmt.Sprintf("with %d waiting: %s", little, show(few)), ratio(many, few), 1.5, "flat (≤ 1.2×)", ratio(many, few) <= 1.2})
	}
	return nil
}

// raceMain waits for a line, then drains a queue: it prints the titles of what it delivered.
func raceMain(args []string) int {
	dir, err := state.Open()
	if err != nil {
		return 1
	}
	q := wake.Open(dir.Project(args[0]))
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	for {
		d, err := q.Claim(context.Background())
		if err == nil && d == nil {
			return 0
		}
		if err == nil {
			err = errors.Join(d.Note(wake.Recipient{}), d.Emit(), d.Close())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		var titles strings.Builder
		for _, w := range d.Wakes {
			titles.WriteString(w.Title + "\n")
		}
		io.WriteString(os.Stdout, titles.String())
	}
}

// race measures processes that want the same wakes at once, against one that has them for itself.
func (b *bench) race() error {
	wakes, racers := b.pick(1000, 300), b.pick(50, 20)
	var took [2][]time.Duration // alone, together
	for n := range b.pick(7, 3) {
		for i, crowd := range []int{1, racers} {
			p, err := b.project(fmt.Sprintf("race-%d-%d", n, crowd), "")
			if err != nil {
				return err
			}
			if err := fill(p, wakes); err != nil {
				return err
			}
			d, err := b.drained(p, crowd, wakes)
			if err != nil {
				return err
			}
			took[i] = append(took[i], d/time.Duration(wakes))
		}
	}
	alone, together := median(took[0]), median(took[1])
	b.add(row{"race",
		fmt.Sprintf("%d processes race for %d wakes, each delivered once: %s a wake", racers, wakes, show(together)),
		fmt.Sprintf("one process drains them alone: %s a wake", show(alone)),
		ratio(together, alone), 3, "≥ 5000/s (" + strconv.Itoa(int(time.Second/together)) + ")", time.Second/together >= 5000})
	return nil
}

// drained is how long a crowd takes to deliver all the wakes of a project, each once.
func (b *bench) drained(p *state.Project, crowd, wakes int) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	type racer struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var all []racer
	defer func() {
		for _, r := range all {
			r.in.Close()
			r.cmd.Wait()
		}
	}()
	for range crowd {
		r := racer{cmd: exec.Command(self, childArg, "race", p.Root)}
		r.cmd.Stderr = os.Stderr
		if r.in, err = r.cmd.StdinPipe(); err != nil {
			return 0, err
		}
		out, err := r.cmd.StdoutPipe()
		if err != nil {
			return 0, err
		}
		r.out = bufio.NewReader(out)
		if err := r.cmd.Start(); err != nil {
			return 0, err
		}
		all = append(all, r)
		if _, err := r.out.ReadString('\n'); err != nil {
			return 0, fmt.Errorf("racer: %w", err)
		}
	}
	began := time.Now()
	for _, r := range all {
		if _, err := io.WriteString(r.in, "go\n"); err != nil {
			return 0, err
		}
	}
	seen := map[string]int{}
	for _, r := range all {
		text, err := io.ReadAll(r.out)
		if err != nil {
			return 0, err
		}
		for title := range strings.Lines(string(text)) {
			seen[title]++
		}
	}
	took := time.Since(began)
	for title, n := range seen {
		if n != 1 {
			return 0, fmt.Errorf("%q was delivered %d times", title, n)
		}
	}
	if len(seen) != wakes {
		return 0, fmt.Errorf("%d of %d wakes were delivered", len(seen), wakes)
	}
	return took, nil
}
