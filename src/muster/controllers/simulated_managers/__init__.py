"""Stand-ins for managers of others, so that their kinds can be tried where the real ones are not at hand.

They create what the real managers create, with the same labels and in the same order, as far as scheduling can tell;
what they leave out is said in `docs/workloads.md`. `definitions` has the kinds themselves.
"""
