import time, uuid
from confluent_kafka import KafkaException, Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
def delivered(error, _):
    if error: raise KafkaException(error)
registry = SchemaRegistryClient({"url": "http://127.0.0.1:8081"})
avro = AvroSerializer(registry, conf={"auto.register.schemas": False, "use.latest.version": True})
producer = Producer({"bootstrap.servers": "127.0.0.1:9092", "partitioner": "murmur2_random", "enable.idempotence": True})
save = {"id": str(uuid.uuid4()), "time": time.time_ns() // 1000, "actor": "user:ada", "verb": "save", "object": "pin:emil-2998"}
value = avro(save, SerializationContext("actions", MessageField.VALUE))
producer.produce("actions", key=save["object"], value=value, on_delivery=delivered)
producer.flush()
