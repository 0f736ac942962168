"""A cluster as a file, decisions carried out on it, and recorded decisions compared.

`snapshot` writes and reads a cluster, `simulate` carries out decisions without one, `decision_log` replays a log.
"""
