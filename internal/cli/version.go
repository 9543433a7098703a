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
		RunE: p.prints(func(*cobra.Command, []string) (any, error) {
			return line(build{app.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}, "%s", app.Version()), nil
		}),
	}
}
