"""The objects and their rules: types, versions, defaults, validation, quantities, selectors."""
