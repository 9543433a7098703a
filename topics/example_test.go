package topics_test

import (
	"fmt"

	"github.com/smartfeed/smartfeed/topics"
)

// Producers in other languages must compute the same partition: Java's murmur2 of the key, with the sign masked, modulo the
// partitions.
func ExamplePartition() {
	for _, key := range []string{"user:7", "board:9", "pin:42"} {
		fmt.Println(key, topics.Partition(key, 16))
	}
	// Output:
	// user:7 4
	// board:9 11
	// pin:42 6
}

func ExampleCatalogue() {
	for _, t := range topics.Catalogue(topics.Profile{Partitions: 16}) {
		if t.Name == topics.Follows {
			fmt.Println(t.Name, "by", t.Key, "in", t.Partitions, "partitions, read by", t.Readers)
		}
	}
	// Output: follows by followee in 16 partitions, read by [fanout]
}
