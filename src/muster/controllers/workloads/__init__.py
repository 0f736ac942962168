"""Groups for the workloads that people run: Jobs, JobSets, LeaderWorkerSets, Ray clusters and the like.

For each kind one module has a pure function from the object to the groups it needs (`tree_of`); `kinds` lists them.
`controller` watches the kinds that a server has and makes the groups. Which pods are members is not decided here but by
the rules of `muster.api.membership`, so leaves have the names that those rules give.
"""
