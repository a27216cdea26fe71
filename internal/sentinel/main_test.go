package sentinel

import (
	"encoding/json"
	"os"
	"testing"

	"vx/internal/proc"
)

// The test binary is also an await, when it is called so: one for the client that VXTEST_CLIENT names.
func TestMain(m *testing.M) {
	if client := os.Getenv("VXTEST_CLIENT"); client != "" && len(os.Args) == 3 {
		var id proc.ID
		if err := json.Unmarshal([]byte(client), &id); err != nil {
			panic(err)
		}
		playAwait("/p", id)
		os.Exit(1)
	}
	os.Exit(runAtHome(m))
}
