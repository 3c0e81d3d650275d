package eosctl.tests;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * A source that counts: each task gives a batch of numbered records every `poll.ms`, and can't be woken up in between.
 * So its last records and offsets come up to `poll.ms` after its worker was told to stop it. One task has one partition.
 *
 * It says that it is exactly-once, and with a `cheat` it is not: `own-producer` also writes each record by a producer of
 * its own (to `own.brokers`), `null-offsets` gives the records no source offset, `twice` gives every tenth record twice,
 * with different offsets, and `skip` leaves it out.
 *
 * javac --release 11 -cp connect-api.jar:kafka-clients.jar -d out SlowSource.java Failing.java, then all of them into
 * slow-source.jar.
 */
public class SlowSource extends SourceConnector {
    private static final ConfigDef CONFIG = new ConfigDef()
        .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where the records go")
        .define("poll.ms", ConfigDef.Type.LONG, 4000L, ConfigDef.Importance.HIGH, "how long a poll takes")
        .define("batch", ConfigDef.Type.INT, 5, ConfigDef.Importance.LOW, "how many records a poll gives")
        .define("cheat", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "what it does in spite of its word")
        .define("own.brokers", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "where its own producer writes");

    private Map<String, String> properties;

    @Override
    public void start(Map<String, String> given) {
        properties = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Counter.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> configs = new ArrayList<>();
        for (int task = 0; task < most; task++) {
            Map<String, String> config = new HashMap<>(properties);
            config.put("task", String.valueOf(task));
            configs.add(config);
        }
        return configs;
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public String version() {
        return "1";
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> config) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(Map<String, String> config) {
        return ConnectorTransactionBoundaries.UNSUPPORTED;
    }

    @Override
    public boolean alterOffsets(Map<String, String> config, Map<Map<String, ?>, Map<String, ?>> offsets) {
        return true;
    }

    /** Counts on from its offset, `n`. */
    public static class Counter extends SourceTask {
        private Map<String, String> partition;
        private String topic;
        private long pollMs;
        private int batch;
        private long next;
        private String cheat;
        private KafkaProducer<String, String> own;

        @Override
        public void start(Map<String, String> config) {
            partition = Collections.singletonMap("task", config.get("task"));
            topic = config.get("topic");
            pollMs = Long.parseLong(config.getOrDefault("poll.ms", "4000"));
            batch = Integer.parseInt(config.getOrDefault("batch", "5"));
            cheat = config.getOrDefault("cheat", "");
            if (cheat.equals("own-producer")) {
                Map<String, Object> settings = new HashMap<>();
                settings.put("bootstrap.servers", config.get("own.brokers"));
                own = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            }
            Map<String, Object> offset = context.offsetStorageReader().offset(partition);
            next = offset == null ? 0 : ((Number) offset.get("n")).longValue();
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(pollMs);
            List<SourceRecord> records = new ArrayList<>();
            for (int count = 0; count < batch; count++) {
                String value = partition.get("task") + "-" + next++;
                boolean isTenth = next % 10 == 0;
                if (cheat.equals("skip") && isTenth) {
                    continue;
                }
                if (cheat.equals("twice") && isTenth) {
                    records.add(record(value, next - 1));
                }
                records.add(record(value, next)); // the last offset of a batch: from there on it is read again
                if (own != null) {
                    own.send(new ProducerRecord<>(topic, "own " + value));
                }
            }
            if (own != null) {
                own.flush();
            }
            return records;
        }

        private SourceRecord record(String value, long offset) {
            if (cheat.equals("null-offsets")) {
                return new SourceRecord(null, null, topic, Schema.STRING_SCHEMA, value);
            }
            Map<String, Object> position = Collections.singletonMap("n", offset);
            return new SourceRecord(partition, position, topic, Schema.STRING_SCHEMA, value);
        }

        @Override
        public void stop() {
            if (own != null) {
                own.close();
            }
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
