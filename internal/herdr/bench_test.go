package herdr

import (
	"bytes"
	"fmt"
	"testing"
)

// fleet is the answer to agent.list with n agents, as herdr words it.
func fleet(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"id":"agent.list","result":{"type":"agent_list","agents":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"terminal_id":"term_65836b2894%04x","name":"worker-%d","agent":"claude","terminal_title":"✳ fix tests","terminal_title_stripped":"fix tests",`+
			`"agent_status":"working","agent_session":{"source":"herdr:claude","agent":"claude","kind":"id","value":"8a6d0c1e-2f7b-4c55-9d0e-1b2c3d4e5f60"},`+
			`"workspace_id":"w1","tab_id":"w1:t1","pane_id":"w1:p%d","focused":false,"interactive_ready":true,"state_change_seq":%d,`+
			`"cwd":"/home/u/proj","foreground_cwd":"/home/u/proj","revision":3}`, i, i, i, 1000+i)
	}
	b.WriteString(`]}}`)
	return b.Bytes()
}

// The first list is decoded in full; in the following ones mostly nothing has changed, or every title's spinner.
func BenchmarkAgents(b *testing.B) {
	for _, n := range []int{10, 1000} {
		line := fleet(n)
		for _, kind := range []string{"new", "unchanged", "spinning"} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				lines := [][]byte{line, line}
				if kind == "spinning" {
					lines[1] = bytes.ReplaceAll(line, []byte("✳"), []byte("⠂"))
				}
				b.SetBytes(int64(len(line)))
				b.ReportAllocs()
				var l listing
				for i := 0; b.Loop(); i++ {
					if kind == "new" {
						l.last = decoded{}
					}
					if all, err := l.decode(lines[i%2]); err != nil || len(all) != n {
						b.Fatal(len(all), err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/agent")
			})
		}
	}
}
