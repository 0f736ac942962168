"""The embedded control plane: server, engine, controllers and nodes started and stopped as one."""
