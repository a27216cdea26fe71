package wake

import "os"

// writeBack is left to the sync that follows.
func writeBack(*os.File) {}
