// Package outgoing restricts connections to addresses from a configuration or from an external party, such as external
// services and key sets. By mistake or on purpose, such a name can resolve to an internal system: this machine, its
// network, or the metadata service of a cloud. Therefore a Guard refuses an address unless it is public or allowed.
//
// The check applies to the address of the connection, after name resolution. Therefore it covers names that resolve
// differently the second time, redirects, and IPv4 addresses in IPv6 form.
package outgoing

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/smartfeed/smartfeed/internal/settings"
)

// Config lists the allowed networks.
type Config struct {
	AllowedNetworks []string `yaml:"allowed_networks" help:"private networks that external sources, models and key sets may use, such as 10.0.0.0/8; public addresses are always permitted"` // default none
}

// Validate reports every invalid network.
func (c Config) Validate() error {
	_, err := c.networks()
	return err
}

func (c Config) networks() ([]netip.Prefix, error) {
	var networks []netip.Prefix
	var problems settings.Problems
	for _, text := range c.AllowedNetworks {
		network, err := netip.ParsePrefix(text)
		problems.Want(err == nil, "allowed_networks: %q is not a network such as 10.0.0.0/8", text)
		networks = append(networks, network.Masked())
	}
	return networks, problems.Err()
}

// ErrRefused is returned for an address that is neither public nor allowed.
var ErrRefused = errors.New("neither public nor in outgoing.allowed_networks")

// connectTimeout applies to each address.
const connectTimeout = 2 * time.Second

// Guard creates connections. It is safe for concurrent use.
type Guard struct {
	allow  []netip.Prefix
	dialer net.Dialer
}

// New returns a guard. resolver may be nil, for that of the system.
func New(cfg Config, resolver *net.Resolver) (*Guard, error) {
	allow, err := cfg.networks()
	if err != nil {
		return nil, fmt.Errorf("outgoing: %w", err)
	}
	g := &Guard{allow: allow}
	g.dialer = net.Dialer{Timeout: connectTimeout, Resolver: resolver, Control: g.control}
	return g, nil
}

// DialContext connects like net.Dialer. For a refused address, the error wraps ErrRefused.
func (g *Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return g.dialer.DialContext(ctx, network, address)
}

// control is called with the address before the socket connects to it.
func (g *Guard) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, ErrRefused)
	}
	if !g.allowed(to.Addr()) {
		return fmt.Errorf("connect to %s: %w", to.Addr(), ErrRefused)
	}
	return nil
}

// allowed checks an address, and the IPv4 address that it may represent.
func (g *Guard) allowed(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	if contains(g.allow, a) {
		return true
	}
	inner, ok := embedded(a)
	return public(a) && (!ok || g.allowed(inner))
}

func contains(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(a) })
}

// embedded returns the IPv4 address that translators (RFC 6052) and 6to4 (RFC 3056) derive from an IPv6 address.
func embedded(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case translated.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return a, false
}

var (
	translated = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	unicast    = netip.MustParsePrefix("2000::/3") // all IPv6 addresses allocated for global unicast (RFC 4291)
)

// reserved lists the entries of the IANA special-purpose address registries (RFC 6890, as of October 2025) that are not
// globally reachable, except those that methods of netip.Addr detect and those outside of unicast.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("3fff::/20"),
}

func public(a netip.Addr) bool {
	isAllocated := !a.Is6() || unicast.Contains(a) || translated.Contains(a)
	return a.IsGlobalUnicast() && !a.IsPrivate() && isAllocated && !contains(reserved, a)
}
