package claude

import (
	"time"

	"vx/internal/proc"
)

func procStart(id proc.ID) string {
	return time.UnixMicro(int64(id.Start)).UTC().Format("Mon Jan _2 15:04:05 2006")
}
