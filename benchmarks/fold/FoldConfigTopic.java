import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.KafkaConfigBackingStore;

/**
 * Feeds a record file to the consumer callback of Kafka's own KafkaConfigBackingStore, as a worker's reader does, and
 * prints one line per connector: name, task count, task-count record, pending fencing.
 */
public class FoldConfigTopic {
    static final String STORE = "org.apache.kafka.connect.storage.KafkaConfigBackingStore";

    public static void main(String[] args) throws Exception {
        KafkaConfigBackingStore store = store();
        Constructor<?> constructor = Class.forName(STORE + "$ConsumeCallback").getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        Object callback = constructor.newInstance(store);
        Method take = callback.getClass().getDeclaredMethod("onCompletion", Throwable.class, ConsumerRecord.class);
        take.setAccessible(true);
        ObjectMapper json = new ObjectMapper();
        try (BufferedReader lines = Files.newBufferedReader(Path.of(args[0]))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                var record = json.readTree(line);
                byte[] value = record.get("value").isNull()
                    ? null : record.get("value").asText().getBytes(StandardCharsets.UTF_8);
                String key = record.get("key").asText();
                take.invoke(callback, null, new ConsumerRecord<>("c", 0, record.get("offset").asLong(), key, value));
            }
        }
        ClusterConfigState state = store.snapshot();
        StringBuilder out = new StringBuilder();
        for (String name : state.connectors())
            out.append(name).append(' ').append(state.taskCount(name)).append(' ').append(state.taskCountRecord(name))
                .append(' ').append(state.pendingFencing(name)).append('\n');
        System.out.print(out);
        System.out.flush();
        System.exit(0);
    }

    static KafkaConfigBackingStore store() throws Exception {
        Map<String, String> properties = new HashMap<>(Map.of("bootstrap.servers", "localhost:1", "group.id", "g",
            "config.storage.topic", "c", "offset.storage.topic", "o", "status.storage.topic", "s"));
        for (String side : new String[] {"key", "value"})
            properties.put(side + ".converter", "org.apache.kafka.connect.json.JsonConverter");
        DistributedConfig config = new DistributedConfig(properties);
        Field clusterId = Class.forName("org.apache.kafka.connect.runtime.WorkerConfig").getDeclaredField("kafkaClusterId");
        clusterId.setAccessible(true);
        clusterId.set(config, "no broker is asked");
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), false);
        return (KafkaConfigBackingStore) KafkaConfigBackingStore.class.getConstructors()[0]
            .newInstance(converter, config, null, (Supplier<Object>) () -> null, "x");
    }
}
