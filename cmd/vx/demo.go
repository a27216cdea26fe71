//go:build !windows

package main

import (
	"context"
	"fmt"
	"os"

	"vx/internal/demo"
)

type demoCommand struct{}

func (demoCommand) Run(ctx context.Context, std stdio) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return demo.Run(ctx, self, std.out)
}
