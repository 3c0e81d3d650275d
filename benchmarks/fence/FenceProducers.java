// Admin.fenceProducers on the ids of a file: what a user of Kafka's own client would write.
// java FenceProducers.java BOOTSTRAP FILE defaults|tuned [CLIENT.PROPERTIES]
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FenceProducersOptions;

public final class FenceProducers {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        if (args.length > 3) {
            try (Reader reader = Files.newBufferedReader(Path.of(args[3]))) {
                settings.load(reader);
            }
        }
        settings.put("bootstrap.servers", args[0]);
        if (args[2].equals("tuned")) {
            // the client waits for its retry backoff after every answer, successful ones too
            settings.put("retry.backoff.ms", "0");
            settings.put("retry.backoff.max.ms", "0");
        }
        List<String> ids = Files.readAllLines(Path.of(args[1]));
        try (Admin admin = Admin.create(settings)) {
            admin.fenceProducers(ids, new FenceProducersOptions().timeoutMs(600_000)).all().get();
        }
    }
}
