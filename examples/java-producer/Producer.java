// Publishes one event with Apache's clients only: java -cp 'lib/*' Producer.java
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Producer {
  /** The schema of a topic, and its id in the registry. */
  record Registered(int id, Schema schema) {
    static Registered latest(String registry, String topic) throws Exception {
      var request = HttpRequest.newBuilder(URI.create(registry + "/subjects/" + topic + "-value/versions/latest")).build();
      var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
      if (answer.statusCode() != 200) throw new IOException("schema of " + topic + ": " + answer.body());
      var json = new ObjectMapper().readTree(answer.body());
      return new Registered(json.get("id").asInt(), new Schema.Parser().parse(json.get("schema").asText()));
    }

    /** Returns Confluent's wire format: a zero byte, the id of the schema in four bytes, and the record in Avro. */
    byte[] encode(GenericRecord value) throws IOException {
      var bytes = new ByteArrayOutputStream();
      var out = new DataOutputStream(bytes);
      out.writeByte(0);
      out.writeInt(id);
      var encoder = EncoderFactory.get().directBinaryEncoder(out, null);
      new GenericDatumWriter<GenericRecord>(schema).write(value, encoder);
      return bytes.toByteArray();
    }
  }

  public static void main(String[] args) throws Exception {
    var actions = Registered.latest("http://127.0.0.1:8081", "actions");
    var save = new GenericRecordBuilder(actions.schema()).set("id", UUID.randomUUID().toString())
        .set("time", System.currentTimeMillis() * 1000).set("actor", "user:ada").set("verb", "save").set("object", "pin:emil-2998").build();
    // The default partitioner is murmur2 of the key, and the producer is idempotent by default.
    var config = Map.<String, Object>of("bootstrap.servers", "127.0.0.1:9092",
        "key.serializer", StringSerializer.class, "value.serializer", ByteArraySerializer.class);
    try (var producer = new KafkaProducer<String, byte[]>(config)) {
      producer.send(new ProducerRecord<>("actions", "pin:emil-2998", actions.encode(save))).get();
    }
  }
}
