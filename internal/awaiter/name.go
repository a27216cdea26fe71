package awaiter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"vx/internal/proc"
)

// idWidth is the width of the project's id that every name begins with, and of the digits that it ends with.
const idWidth = 8

// clientWidth is how many of a name's last hex digits, the first of them, tell clients apart; the rest is random.
const clientWidth = 4

// unknownClient stands in the name of an awaiter whose client's process is not known.
const unknownClient = "0000"

// clientTag is the part of an awaiter's name that says which client it may be of, so that its record need not be read by
// those of others.
func clientTag(client proc.ID) string {
	if client.IsZero() {
		return unknownClient
	}
	sum := sha256.Sum256(fmt.Append(nil, client.PID, client.Start))
	sum[0] |= 0x80 // never that of an unknown one
	return hex.EncodeToString(sum[:clientWidth/2])
}

// mayShareClient goes by the names of two awaiters.
func mayShareClient(a, b string) bool {
	tag := func(base string) string { return base[len(base)-idWidth:][:clientWidth] }
	return a[:idWidth] == b[:idWidth] && (tag(a) == tag(b) || tag(a) == unknownClient || tag(b) == unknownClient)
}

// pidOf takes the process out of "<8 hex of the project>-<pid>-<8 hex>"; 0 for a name of another form.
func pidOf(base string) int {
	parts := strings.Split(base, "-")
	if len(parts) != 3 || !isHex8(parts[0]) || !isHex8(parts[2]) {
		return 0
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid < 1 {
		return 0
	}
	return pid
}

func isHex8(s string) bool {
	return len(s) == idWidth && strings.Trim(s, "0123456789abcdef") == ""
}

// temp is the name that a file has until it is whole.
func temp(path string) string {
	dir, name := filepath.Split(path)
	return dir + "." + name
}
