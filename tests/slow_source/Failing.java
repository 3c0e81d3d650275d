package eosctl.tests;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * A transformation that fails at the records whose values are in `at`: `retriable` throws a RetriableException, as a
 * converter does whose schema registry is away, `data` a DataException, and `large` makes the record too large for the
 * producer.
 *
 * Compiled and packed with SlowSource.java.
 */
public class Failing<R extends ConnectRecord<R>> implements Transformation<R> {
    private static final ConfigDef CONFIG = new ConfigDef()
        .define("at", ConfigDef.Type.STRING, "", ConfigDef.Importance.HIGH, "the values, with commas")
        .define("how", ConfigDef.Type.STRING, "retriable", ConfigDef.Importance.HIGH, "how it fails");

    private Set<String> at;
    private String how;

    @Override
    public void configure(Map<String, ?> config) {
        at = new HashSet<>(Arrays.asList(String.valueOf(config.get("at")).split(",")));
        how = config.containsKey("how") ? String.valueOf(config.get("how")) : "retriable";
    }

    @Override
    public R apply(R record) {
        if (!at.contains(String.valueOf(record.value()))) {
            return record;
        }
        switch (how) {
            case "retriable":
                throw new RetriableException("the schema registry is away");
            case "data":
                throw new DataException("this can't be converted");
            default:
                return record.newRecord(record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
                    record.valueSchema(), record.value() + new String(new char[100_000]), record.timestamp());
        }
    }

    @Override
    public ConfigDef config() {
        return CONFIG;
    }

    @Override
    public void close() {
    }
}
