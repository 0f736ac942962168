"""The API server: a transport-free core over a store, and a thin HTTP adapter in front of it."""
