package wake

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is how many characters of a key are kept in a file name; hashLen more tell apart what was cut.
const (
	maxName = 80
	hashLen = 8
)

// FileName makes a key safe as a file name on every file system: lower case letters, digits, ".", "_" and "-", at most
// 80 of them and not beginning with a dot. Where anything had to change, 8 hex digits of the key's SHA-256 are in the
// name, so that keys that differ only in case, or behind the 80th character, stay two.
func FileName(key string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, key)
	safe = strings.TrimLeft(safe, ".")
	if safe == key && safe != "" && len(safe) <= maxName {
		return safe
	}
	sum := sha256.Sum256([]byte(key))
	return safe[:min(len(safe), maxName-hashLen-1)] + "-" + hex.EncodeToString(sum[:])[:hashLen]
}

// isWake reports whether a name in the queue's directory is a wake's.
func isWake(name string) bool {
	return strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".")
}
