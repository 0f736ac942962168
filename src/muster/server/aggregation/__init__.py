"""APIServices of other servers: their groups are part of this API, and requests to them are passed on.

`remote_services` knows which groups and versions those are, `service_proxy` passes requests on, `availability` checks
who answers and writes the conditions, `remote_discovery` merges their resources into the discovery pages.
"""
