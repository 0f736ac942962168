"""Scenarios through the API, as YAML files, and their runner; the format is in README.md."""
