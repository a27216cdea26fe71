package atomicfile

import "os"

// readQuiet reads a file. Whether another program has it open for writing, the system does not tell.
func readQuiet(path string) (data []byte, quiet bool, err error) {
	data, err = os.ReadFile(path)
	return data, true, err
}
