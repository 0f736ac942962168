"""The shell around the brain: informers, binder, status writer, leases, metrics. All I/O and all waiting live here."""
