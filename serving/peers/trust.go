package peers

import (
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/smartfeed/smartfeed/internal/secure"
	"github.com/smartfeed/smartfeed/internal/settings"
)

// CheckAddress returns an error for an address, host:port, that this process must not call. Addresses come from the client
// ids of group members, so anyone with permission to join a group can name any address. Beyond loopback, only TLS proves that a peer
// answers.
func (c Config) CheckAddress(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("peer address %q is not host:port", address)
	}
	if !c.HTTPS && !c.Insecure && !secure.OnLoopback(host) {
		return fmt.Errorf("peer address %s: calls beyond loopback need TLS: set peers.https, or peers.insecure", address)
	}
	if len(c.AllowedAddresses) > 0 && !c.allows(host) {
		return fmt.Errorf("peer address %s is not in peers.allowed_addresses", address)
	}
	return nil
}

// allows reports whether a host matches an entry. An IP address matches networks and equal entries; a name matches suffixes
// and equal entries.
func (c Config) allows(host string) bool {
	ip, err := netip.ParseAddr(host)
	for _, entry := range c.AllowedAddresses {
		suffix := strings.HasPrefix(entry, ".")
		network, notNetwork := netip.ParsePrefix(entry)
		switch {
		case err == nil && notNetwork == nil && network.Contains(ip.Unmap()),
			!suffix && strings.EqualFold(entry, host),
			suffix && err != nil && len(host) > len(entry) && strings.EqualFold(host[len(host)-len(entry):], entry):
			return true
		}
	}
	return false
}

func (c Config) validateAllow() error {
	var problems settings.Problems
	for _, entry := range c.AllowedAddresses {
		_, err := netip.ParsePrefix(entry)
		damaged := strings.Contains(entry, "/") && err != nil || strings.Trim(entry, ".") == "" || strings.ContainsAny(entry, " *@")
		problems.Want(!damaged, "allowed_addresses: %q: want a network 10.0.0.0/8, a host name, or a suffix .example.com", entry)
	}
	return problems.Err()
}
