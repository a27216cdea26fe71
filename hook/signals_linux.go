//go:build amd64 || arm64

package hook

import "vx/internal/rest"

func (s signals) catch() error { return rest.Catch(s.told) }
