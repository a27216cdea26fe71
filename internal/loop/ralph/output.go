package ralph

import (
	"bytes"
	"os"
)

// maxLog is in bytes: a log that is larger is put aside under the same name and ".1", in the place of the one before.
const maxLog = 16 << 20

// promises are how a worker says that it has finished; it is noted, and ends nothing.
var promises = [][]byte{[]byte("promise=COMPLETE"), []byte("<promise>COMPLETE</promise>")}

// output is the log of a worker.
type output struct {
	file     *os.File
	open     func() (*os.File, error)
	size     int64
	most     int64
	tail     []byte // what a promise may have begun in
	promised bool
}

// Write never fails: a full disk does not end the worker.
func (o *output) Write(p []byte) (int, error) {
	seen := append(o.tail, p...)
	for _, want := range promises {
		o.promised = o.promised || bytes.Contains(seen, want)
	}
	o.tail = bytes.Clone(seen[max(0, len(seen)-len(promises[1])):])
	if o.size > 0 && o.size+int64(len(p)) > o.most {
		o.rotate()
	}
	n, _ := o.file.Write(p)
	o.size += int64(n)
	return len(p), nil
}

func (o *output) rotate() {
	name := o.file.Name()
	if os.Rename(name, name+".1") != nil {
		return
	}
	if f, err := o.open(); err == nil {
		o.file.Close()
		o.file, o.size = f, 0
	}
}

// capped keeps the first bytes of what is written.
type capped struct {
	bytes.Buffer
	most int
	more bool
}

func (c *capped) Write(p []byte) (int, error) {
	fits := p[:min(len(p), c.most-c.Len())]
	c.more = c.more || len(fits) < len(p)
	c.Buffer.Write(fits)
	return len(p), nil
}
