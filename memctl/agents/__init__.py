"""Register memctl in the configuration files of agents' clients, and remove it again."""
