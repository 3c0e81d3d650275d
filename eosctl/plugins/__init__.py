"""What the jars of Connect plugins need of Kafka, and which Kafka has it. Read without a JVM."""
