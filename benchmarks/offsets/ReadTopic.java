// All committed records of a topic, to nowhere: what a user of Kafka's own client would write, with large fetches.
// java ReadTopic.java BOOTSTRAP TOPIC RECORDS
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class ReadTopic {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "100000");
        settings.put("max.partition.fetch.bytes", String.valueOf(16 << 20));
        settings.put("fetch.max.bytes", String.valueOf(64 << 20));
        settings.put("receive.buffer.bytes", String.valueOf(1 << 20));
        settings.put("check.crcs", "false");
        long wanted = Long.parseLong(args[2]), records = 0, bytes = 0;
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, plain, plain)) {
            List<TopicPartition> partitions = consumer.partitionsFor(args[1]).stream()
                .map(each -> new TopicPartition(args[1], each.partition()))
                .collect(Collectors.toList());
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            while (records < wanted) {
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofSeconds(1))) {
                    records++;
                    bytes += each.key().length + (each.value() == null ? 0 : each.value().length);
                }
            }
        }
        System.out.println(records + " records, " + bytes + " bytes");
    }
}
