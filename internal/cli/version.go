package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/smartfeed/smartfeed/app"
)

// build is the result of version.
type build struct {
	Version string `json:"version"` // see app.Version
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		Example: "  smartfeed version\n  smartfeed version -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.printLine(cmd, build{app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}, app.Version())
		},
	}
}
