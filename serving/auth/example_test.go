package auth_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/smartfeed/smartfeed/serving/auth"
)

// A token for evaluation, created and verified with the same secret.
func ExampleVerifier() {
	if err := tryOut(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// service:recommender: features true, operate false
	// refused
}

func tryOut(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg := auth.DefaultConfig()
	cfg.SecretFile = filepath.Join(dir, "secret")
	secret, _, err := auth.MakeSecret(cfg.SecretFile)
	if err != nil {
		return err
	}
	verifier, err := auth.NewVerifier(cfg, auth.Deps{})
	if err != nil {
		return err
	}

	token, err := auth.Mint(cfg, secret, auth.Grant{Service: "recommender", Scopes: []string{auth.Features}, For: time.Hour}, time.Now())
	if err != nil {
		return err
	}
	caller, err := verifier.Verify(ctx, token)
	if err != nil {
		return err
	}
	fmt.Printf("%s: features %t, operate %t\n", caller.Subject, caller.HasScope(auth.Features), caller.HasScope(auth.Operate))

	var why *auth.TokenError
	if _, err := verifier.Verify(ctx, token[:len(token)-8]); errors.As(err, &why) {
		fmt.Println("refused")
	}
	return nil
}
