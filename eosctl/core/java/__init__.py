"""Java's formats: JSON, properties, JAAS, key stores; read and written as Java does; pure."""
