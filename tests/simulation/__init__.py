"""Bad days in virtual time: the control plane under injected faults, every day repeatable from its seed."""
