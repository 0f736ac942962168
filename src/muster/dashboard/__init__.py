"""The dashboard: pages in a browser over the same answers as the commands, read-only.

A `Board` holds what the pages show of one cluster and knows what changed since when. It is fed by watches
(`live_cluster`), by a snapshot file, or by a decision log (`recording`). `app` serves it; `static` holds the pages,
which only draw.
"""
