// Package rest is how a process waits for an hour at next to no cost, as one of hundreds: it is woken once every five
// seconds, looks with a few system calls whether there is anything to do, and allocates nothing meanwhile. It only
// notices; what has happened, and what to do about it, its caller finds out. It holds nothing on disk.
//
// It is of Linux only, on the processors that it has a signal handler for. What makes it cheap is in Wait.
package rest

import "time"

// Wait is what ends a rest.
type Wait struct {
	Readable []int         // descriptors of which one can be read: a doorbell, a pidfd
	Hangup   []int         // descriptors whose other end goes away; nothing else about them counts
	Parent   int           // the parent is another process than this
	Most     time.Duration // so much time has passed, sleep included
	Files    []string      // one of them is not there
	Locks    []string      // nobody holds the lock on one of these files
	Places   []Place       // one holds something

	Hold []string // files that are kept locked, those of them that can be
}

// Place is a directory in which something may appear: an entry with a name that does not begin with a dot, and that
// ends with Suffix.
type Place struct{ Path, Suffix string }
