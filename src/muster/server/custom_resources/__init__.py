"""CustomResourceDefinitions: kinds that users define, from a stored definition to served objects.

A definition is checked (`definition_rules`, `structural_rules`), its names are accepted or not (`definition_status`),
and each of its versions becomes a `Kind` (`custom_kind`) as soon as it is stored (`definitions`). Objects of such kinds
go through the same verbs as all others. What their schema does to them is here: `pruning`, `defaulting`, `validation`,
`ownership`, `printer_columns`.
"""
