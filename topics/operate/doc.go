// Package operate is what operators run on the topics: smartfeed's commands topics, publish, wait and deadletters, and what is
// behind erase, rebuild, replay and refill. It asks and tells the brokers alone, so it can run anywhere; the work is done by the
// processes that read the topics.
package operate
