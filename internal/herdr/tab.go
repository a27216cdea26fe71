package herdr

import "context"

// TabInfo is a tab as herdr lists it.
type TabInfo struct {
	TabID string `json:"tab_id"`
	Label string `json:"label"`
}

// Tabs lists the tabs of all workspaces.
func (c *Client) Tabs(ctx context.Context) ([]TabInfo, error) {
	var result struct{ Tabs []TabInfo }
	err := c.ask(ctx, c.patience(), "tab.list", nothing{}, "tab_list", &result)
	return result.Tabs, err
}

// Panes lists the panes of all workspaces, those of shells too.
func (c *Client) Panes(ctx context.Context) ([]Pane, error) {
	var result struct{ Panes []Pane }
	err := c.ask(ctx, c.patience(), "pane.list", nothing{}, "pane_list", &result)
	return result.Panes, err
}
