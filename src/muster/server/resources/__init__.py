"""What the server knows of each kind: the `Kind` declaration, its rules, its table columns and selectable fields."""
