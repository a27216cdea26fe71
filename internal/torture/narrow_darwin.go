package main

import "os"

// narrow does nothing: macOS sizes its pipes itself.
func narrow(*os.File, int) {}
