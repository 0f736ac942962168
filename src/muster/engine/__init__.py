"""Runs a scheduler against an API server: event sources bring events in, API calls carry decisions out.

All waiting, all I/O and all concurrency of scheduling live here; what to do is decided in `muster.scheduler`. `Engine`
(in `muster.engine.engine`) is the whole of it as one object.
"""
