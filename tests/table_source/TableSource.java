package eosctl.tests;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * Reads a table of a database by JDBC, in the order of its column `id`, as JDBC sources in mode incrementing do.
 * With `forgets` true it declares the same exactlyOnceSupport, and begins at a stale id after each start: records twice.
 *
 * javac --release 11 -cp connect-api.jar:kafka-clients.jar -d out TableSource.java, then both into table-source.jar.
 */
public class TableSource extends SourceConnector {
    private static final ConfigDef CONFIG = new ConfigDef()
        .define("connection.url", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "of the database")
        .define("table", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "with the columns id and text")
        .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where the records go")
        .define("forgets", ConfigDef.Type.BOOLEAN, false, ConfigDef.Importance.LOW, "whether it reads records twice");

    private Map<String, String> properties;

    @Override
    public void start(Map<String, String> given) {
        properties = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Reader.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.singletonList(new HashMap<>(properties));
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

    /** Reads on from its offset, `id`. */
    public static class Reader extends SourceTask {
        private static final int MOST = 100;
        private static final int FORGOTTEN = 5;
        private Map<String, String> partition;
        private Map<String, String> config;
        private Connection connection;
        private long last;

        @Override
        public void start(Map<String, String> given) {
            config = given;
            partition = Collections.singletonMap("table", config.get("table"));
            Map<String, Object> offset = context.offsetStorageReader().offset(partition);
            last = offset == null ? 0 : ((Number) offset.get("id")).longValue();
            if (Boolean.parseBoolean(config.get("forgets"))) {
                last = Math.max(0, last - FORGOTTEN);
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            List<SourceRecord> records = new ArrayList<>();
            try {
                if (connection == null) {
                    connection = DriverManager.getConnection(config.get("connection.url"));
                }
                String query = "SELECT id, text FROM " + config.get("table") + " WHERE id > ? ORDER BY id LIMIT " + MOST;
                try (PreparedStatement statement = connection.prepareStatement(query)) {
                    statement.setLong(1, last);
                    try (ResultSet rows = statement.executeQuery()) {
                        while (rows.next()) {
                            last = rows.getLong(1);
                            String value = "{\"id\": " + last + ", \"text\": \"" + rows.getString(2) + "\"}";
                            Map<String, Object> offset = Collections.singletonMap("id", last);
                            records.add(
                                new SourceRecord(partition, offset, config.get("topic"), Schema.STRING_SCHEMA, value));
                        }
                    }
                }
            } catch (SQLException exc) {
                throw new ConnectException("the table could not be read", exc);
            }
            if (records.isEmpty()) {
                Thread.sleep(100);
            }
            return records;
        }

        @Override
        public void stop() {
            try {
                if (connection != null) {
                    connection.close();
                }
            } catch (SQLException exc) {
                throw new ConnectException("the database could not be closed", exc);
            }
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
