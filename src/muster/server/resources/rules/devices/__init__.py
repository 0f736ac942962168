"""What the kinds of `resource.k8s.io` default and refuse: claims, templates, classes, slices, taint rules.

The words and the order of the errors are kube-apiserver's. What is stored already is not judged again: an expression
that a newer server would refuse stays valid in an object that does not change it.
"""
