package app_test

import (
	"testing"

	"github.com/smartfeed/smartfeed/app"
	"github.com/smartfeed/smartfeed/internal/cli"
)

func TestMain(m *testing.M) {
	app.Execute = cli.Execute
	app.RunMain(m)
}
