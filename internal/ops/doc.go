// Package ops contains the operator commands topics, publish, wait and deadletters, and the functions behind erase,
// rebuild, replay and refill. It communicates only with the brokers, so it can run on any host. The processes that read the
// topics do the work.
package ops
