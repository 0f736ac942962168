"""One declarative registry of the kinds that are served."""
