package claude

import (
	"strconv"

	"vx/internal/proc"
)

func procStart(id proc.ID) string { return strconv.FormatUint(id.Start, 10) }
