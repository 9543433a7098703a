package test

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

//go:embed accessible.js
var accessible string

// needsName reports whether a role is that of a control, or of content other than text.
func needsName(role string) bool {
	switch role {
	case "button", "link", "textbox", "combobox", "searchbox", "checkbox", "switch", "tab", "menuitem", "DisclosureTriangle",
		"image", "img", "dialog", "form", "search", "region", "table", "navigation":
		return true
	}
	return false
}

// CheckAccessible fails the test for accessibility problems of the page:
//
//   - controls, pictures and regions without a name in the accessibility tree;
//   - text with insufficient contrast;
//   - touch targets that are too small;
//   - an invalid structure of headings, landmarks and ids.
func (p *Page) CheckAccessible(what string) {
	p.t.Helper()
	for _, problem := range Eval[[]string](p, "("+accessible+")()") {
		p.t.Errorf("%s: %s", what, problem)
	}
	for _, problem := range value(p, "read the accessibility tree", unnamed) {
		p.t.Errorf("%s: %s", what, problem)
	}
}

// unnamed returns elements without a name whose role needs one.
func unnamed(ctx context.Context, tab *chromedp.Target) ([]string, error) {
	tree, err := cdp.Call(ctx, tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		return nil, err
	}
	var problems []string
	named := 0
	for _, n := range tree.Nodes {
		role := textOf(n.Role)
		if n.Ignored || !needsName(role) {
			continue
		}
		if textOf(n.Name) == "" {
			problems = append(problems, "a "+role+" has no name")
		} else {
			named++
		}
	}
	if named < 2 {
		problems = append(problems, "almost no element has a name: is this the page?")
	}
	return problems, nil
}

// textOf returns the text of a value, or "" if it is not a text.
func textOf(v *accessibility.Value) string {
	var text string
	if v == nil || json.Unmarshal(v.Value, &text) != nil {
		return ""
	}
	return text
}
