"""A cluster as a file, decisions carried out on it, and recorded decisions compared."""
