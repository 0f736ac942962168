"""Why an entity is not scheduled and what would help.

`explain` derives the answer from the same planner as the decision, `sentences` puts it into words, `suggestions` tries
changes that would help.
"""
