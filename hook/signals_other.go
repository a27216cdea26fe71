//go:build !linux || !(amd64 || arm64)

package hook

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func (s signals) catch() error {
	asked, broken := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(broken, unix.SIGPIPE)
	signal.Notify(asked, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT)
	go func() {
		<-asked
		unix.Write(s.told, []byte{1})
	}()
	return nil
}
