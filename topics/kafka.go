package topics

// Kafka is how to reach the brokers: the one place where clients of franz-go and of sarama are configured.
type Kafka struct {
	Brokers    []string
	Partitions int32 // of every co-partitioned topic, frozen when the topics are created
}
