// What the tasks of a source connector write: transactions of records with the source offset, a thread per task.
// java WriteTransactions.java BOOTSTRAP TOPIC OFFSETS_TOPIC GROUP CONNECTOR TASKS RECORDS RECORDS_PER_TRANSACTION
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class WriteTransactions {
    private static final int HALF_A_VALUE = 500, IN_A_ROW = 32;

    public static void main(String[] args) throws Exception {
        int tasks = Integer.parseInt(args[5]);
        ExecutorService threads = Executors.newFixedThreadPool(tasks);
        List<Future<?>> running = new ArrayList<>();
        for (int task = 0; task < tasks; task++) {
            int number = task;
            running.add(threads.submit(() -> write(args, number, Long.parseLong(args[6]) / tasks)));
        }
        for (Future<?> each : running) {
            each.get();
        }
        threads.shutdown();
    }

    private static void write(String[] args, int task, long records) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("transactional.id", args[3] + "-" + args[4] + "-" + task);
        settings.put("compression.type", "lz4");
        settings.put("max.in.flight.requests.per.connection", "1");
        settings.put("linger.ms", "5");
        byte[] noise = new byte[1 << 20];
        new Random(7 + task).nextBytes(noise);
        byte[] key = ("[\"" + args[4] + "\",{\"task\":" + task + "}]").getBytes();
        int perTransaction = Integer.parseInt(args[7]);
        ByteArraySerializer plain = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, plain, plain)) {
            producer.initTransactions();
            int partitions = producer.partitionsFor(args[1]).size();
            for (long done = 0; done < records; ) {
                producer.beginTransaction();
                for (long end = Math.min(records, done + perTransaction); done < end; done++) {
                    byte[] value = new byte[2 * HALF_A_VALUE];  // the other half is zeros: lz4 halves it
                    System.arraycopy(noise, (int) (done * 7919 % (noise.length - HALF_A_VALUE)), value, 0, HALF_A_VALUE);
                    producer.send(new ProducerRecord<>(args[1], (int) (done / IN_A_ROW % partitions), null, value));
                }
                byte[] offset = ("{\"position\":" + done + "}").getBytes();
                producer.send(new ProducerRecord<>(args[2], key, offset));
                producer.commitTransaction();
            }
        }
    }
}
