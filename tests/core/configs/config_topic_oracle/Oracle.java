import java.lang.reflect.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.storage.*;

/**
 * Feeds logs to the consumer callback of Kafka's own KafkaConfigBackingStore and prints its state after each.
 *
 * How vectors.ndjson was made (4.3.1, JARS being the jars of connect-runtime and connect-json with what they need):
 * javac -cp "JARS/*" Oracle.java && java -cp "JARS/*:." Oracle logs.ndjson > vectors.ndjson
 * A line of logs.ndjson is [[offset, key, value], ...]; key and value are null, or bytes spelled as ISO-8859-1 text.
 */
public class Oracle {
    static final String STORE = "org.apache.kafka.connect.storage.KafkaConfigBackingStore";

    public static void main(String[] args) throws Exception {
        Map<String, String> properties = new HashMap<>(Map.of("bootstrap.servers", "localhost:1", "group.id", "g",
            "config.storage.topic", "c", "offset.storage.topic", "o", "status.storage.topic", "s"));
        for (String side : List.of("key", "value"))
            properties.put(side + ".converter", "org.apache.kafka.connect.json.JsonConverter");
        DistributedConfig config = new DistributedConfig(properties);
        Field clusterId = Class.forName("org.apache.kafka.connect.runtime.WorkerConfig").getDeclaredField("kafkaClusterId");
        clusterId.setAccessible(true);
        clusterId.set(config, "no broker is asked");
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "false"), false);
        Constructor<?> callbacks = Class.forName(STORE + "$ConsumeCallback").getDeclaredConstructors()[0];
        callbacks.setAccessible(true);
        Method take = callbacks.getDeclaringClass().getDeclaredMethod("onCompletion", Throwable.class, ConsumerRecord.class);
        take.setAccessible(true);
        var json = new com.fasterxml.jackson.databind.ObjectMapper();
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            var store = (KafkaConfigBackingStore) KafkaConfigBackingStore.class.getConstructors()[0]
                .newInstance(converter, config, null, (Supplier<Object>) () -> null, "x");
            Object callback = callbacks.newInstance(store);
            List<Long> threw = new ArrayList<>();
            for (var record : json.readTree(line)) {
                long offset = record.get(0).asLong();
                String key = new StringDeserializer().deserialize("c", bytes(record.get(1)));
                try {
                    take.invoke(callback, null, new ConsumerRecord<>("c", 0, offset, key, bytes(record.get(2))));
                } catch (InvocationTargetException e) {
                    threw.add(offset);
                }
            }
            Map<String, Object> answer = state(store);
            answer.put("threw", threw);
            answer.put("log", json.readTree(line));
            System.out.println(json.writeValueAsString(answer));
        }
        System.out.flush();
        System.exit(0);
    }

    static byte[] bytes(com.fasterxml.jackson.databind.JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.ISO_8859_1);
    }

    static Map<String, Object> state(KafkaConfigBackingStore store) throws Exception {
        ClusterConfigState state = store.snapshot();
        Set<String> names = new TreeSet<>(state.connectors());
        for (String map : List.of("connectorTargetStates", "connectorTaskCounts", "connectorTaskCountRecords")) {
            Field field = KafkaConfigBackingStore.class.getDeclaredField(map);
            field.setAccessible(true);
            for (Object name : ((Map<?, ?>) field.get(store)).keySet())
                names.add((String) name);
        }
        Map<String, Object> connectors = new TreeMap<>();
        for (String name : names)
            connectors.put(name, connector(state, name));
        return new TreeMap<>(Map.of("offset", state.offset(), "session_key", state.sessionKey() != null, "connectors", connectors));
    }

    static Map<String, Object> connector(ClusterConfigState state, String name) {
        Map<String, Object> row = new TreeMap<>();
        row.put("config", state.rawConnectorConfig(name));
        row.put("target_state", state.targetState(name) == null ? null : state.targetState(name).name());
        row.put("task_count", state.taskCount(name));
        row.put("task_count_record", state.taskCountRecord(name));
        row.put("task_config_generation", state.taskConfigGeneration(name));
        row.put("pending_fencing", state.pendingFencing(name));
        row.put("inconsistent", state.inconsistentConnectors().contains(name));
        try {
            row.put("task_ids", state.tasks(name).stream().map(id -> id.task()).toList());
        } catch (IllegalArgumentException e) { // a negative count: no list has that size
            row.put("task_ids", List.of());
        }
        return row;
    }
}
