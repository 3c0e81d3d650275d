"""What Java writes: JSON, properties, JAAS, key stores; read and written as Java does; pure."""
