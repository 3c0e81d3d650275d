"""Settings of Debezium's six connectors, from their documentation; the form of such a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----"
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";'


@dataclass(frozen=True)
class Settings:
    """`secret`: what may never be shown; `harmless`: what an operator needs to see, as it is."""

    secret: Mapping[str, str]
    harmless: Mapping[str, str] = field(default_factory=dict)


_DEBEZIUM = {
    "tasks.max": "1",
    "topic.prefix": "shop-1",
    "table.include.list": "public.orders,public.order_lines",
    "database.hostname": "db.example.com",
    "database.port": "5432",
    "snapshot.mode": "initial",
    "snapshot.isolation.mode": "repeatable_read",
    "heartbeat.interval.ms": "10000",
    "signal.data.collection": "public.debezium_signal",
    "schema.history.internal.kafka.topic": "schema-changes",
    "schema.history.internal.kafka.bootstrap.servers": "k1:9092,k2:9092",
    "schema.history.internal.producer.security.protocol": "SASL_SSL",
    "schema.history.internal.producer.ssl.truststore.location": "/etc/kafka/truststore.jks",
    "tombstones.on.delete": "false",
    "decimal.handling.mode": "string",
    "message.key.columns": "public.orders:id,region;public.order_lines:order_id",
    "exactly.once.support": "required",
    "transaction.boundary": "interval",
    "transforms": "route",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": "([^.]+)\\.([^.]+)",
    "transforms.route.replacement": "$2",
    "transforms.unwrap.add.fields": "op,source.ts_ms",
    "transforms.cast.spec": "id:int64,name:string",
    "predicates.isOrder.pattern": "orders.*",
}
_DEBEZIUM_SECRET = {
    "database.password": "hunter2",
    "schema.history.internal.producer.sasl.jaas.config": JAAS,
    "schema.history.internal.consumer.ssl.keystore.password": "hunter2",
    "schema.history.internal.consumer.ssl.key.password": "hunter2",
    "database.initial.statements": "SET ROLE x PASSWORD 'hunter2'",
    "heartbeat.action.query": "INSERT INTO t VALUES ('hunter2')",
}
DEBEZIUM: dict[str, Settings] = {
    "Debezium MySQL": Settings(
        {
            **_DEBEZIUM_SECRET,
            "database.ssl.keystore.password": "hunter2",
            "database.ssl.truststore.password": "hunter2",
        },
        {
            **_DEBEZIUM,
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "database.server.id": "184054",
            "database.include.list": "inventory",
            "database.ssl.mode": "required",
            "database.ssl.keystore": "/etc/mysql/keystore.jks",
            "include.schema.changes": "true",
            "gtid.source.includes": ".*",
        },
    ),
    "Debezium PostgreSQL": Settings(
        {**_DEBEZIUM_SECRET, "database.sslpassword": "hunter2", "database.sslkey": PEM},
        {
            **_DEBEZIUM,
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "slot.name": "orders_slot",
            "slot.drop.on.stop": "false",
            "publication.name": "dbz_publication",
            "publication.autocreate.mode": "filtered",
            "database.dbname": "shop",
            "database.sslmode": "verify-full",
            "database.sslrootcert": "/etc/ssl/ca.crt",
            "schema.include.list": "public",
        },
    ),
    "Debezium SQL Server": Settings(
        {**_DEBEZIUM_SECRET, "database.trustStorePassword": "hunter2", "driver.trustStorePassword": "hunter2"},
        {
            **_DEBEZIUM,
            "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector",
            "database.names": "shop,crm",
            "database.instance": "SQLEXPRESS",
            "database.encrypt": "true",
            "data.query.mode": "function",
        },
    ),
    "Debezium Oracle": Settings(
        {**_DEBEZIUM_SECRET, "database.url": "jdbc:oracle:thin:scott/hunter2@//db:1521/x"},
        {
            **_DEBEZIUM,
            "connector.class": "io.debezium.connector.oracle.OracleConnector",
            "database.dbname": "ORCLCDB",
            "database.pdb.name": "ORCLPDB1",
            "database.connection.adapter": "logminer",
            "log.mining.strategy": "online_catalog",
            "log.mining.flush.table.name": "LOG_MINING_FLUSH",
            "rac.nodes": "10.0.0.1,10.0.0.2",
        },
    ),
    "Debezium MongoDB": Settings(
        {
            "mongodb.password": "hunter2",
            "mongodb.connection.string": "mongodb://u:hunter2@db:27017/?replicaSet=rs0",
            "mongodb.ssl.keystore.password": "hunter2",
            "mongodb.ssl.truststore.password": "hunter2",
        },
        {
            "connector.class": "io.debezium.connector.mongodb.MongoDbConnector",
            "topic.prefix": "shop",
            "collection.include.list": "shop.orders",
            "database.include.list": "shop",
            "capture.mode": "change_streams_update_full",
            "mongodb.authsource": "admin",
            "mongodb.ssl.enabled": "true",
        },
    ),
    "Debezium Db2": Settings(
        _DEBEZIUM_SECRET,
        {**_DEBEZIUM, "connector.class": "io.debezium.connector.db2.Db2Connector", "database.dbname": "TESTDB"},
    ),
}
